"""Files: safetensors, GGUF, NumPy files, checkpoints, folders in the format of Hugging Face."""
from lavax.io.checkpoints import Checkpoint, CheckpointManager
from lavax.io.pretrained import save_pretrained
from lavax.io.trees import load, save

__all__ = ["Checkpoint", "CheckpointManager", "load", "save", "save_pretrained"]
