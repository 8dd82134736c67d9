"""Training loops: metrics, logs, evaluation, checkpoints, resuming."""
from lavax.train.fit import Fitted, evaluate, fit
from lavax.train.logs import CSVLog, Log
from lavax.train.metrics import memory_in_use
from lavax.train.progress import ProgressBar
from lavax.train.state import State, initial_state, training_step
from lavax.train.tensorboard import TensorBoardLog

__all__ = [
    "CSVLog",
    "Fitted",
    "Log",
    "ProgressBar",
    "State",
    "TensorBoardLog",
    "evaluate",
    "fit",
    "initial_state",
    "memory_in_use",
    "training_step",
]
