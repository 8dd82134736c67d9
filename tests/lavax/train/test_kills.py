"""Training that is killed again and again ends as if it had not been."""
from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lavax import io, train
from tests.lavax.train.regression import OPTIMIZER, loader, loss, state

STEPS = 25

_TRAINING = f"""
import sys, time
from lavax import io, train
from lavax.tracer.values.backend import register
from tests.lavax.train.regression import OPTIMIZER, loader, loss, state
from tests.numpy_backend import NumpyBackend

register(NumpyBackend)
inner = train.training_step(loss, OPTIMIZER)

def step(state, batch):
    print(".", end="", flush=True)
    time.sleep(0.02)
    return inner(state, batch)

checkpoints = io.CheckpointManager(sys.argv[1] + "/checkpoints", keep=2)
log = train.CSVLog(sys.argv[1] + "/log.csv")
train.fit(
    step, state(), loader(), steps={STEPS}, log_every=1, logs=[log], checkpoints=checkpoints, checkpoint_every=3,
    progress=False,
)
"""


@pytest.mark.usefixtures("reference_backend")
def test_a_run_that_is_killed_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    draw, kills = random.Random(1), 0
    for attempt in range(5):
        run = subprocess.Popen([sys.executable, "-c", _TRAINING, str(tmp_path)], stdout=subprocess.PIPE)
        assert run.stdout is not None
        if attempt < 2:
            run.stdout.read(6)  # at least a checkpoint further
            time.sleep(0.1 * draw.random())
            run.send_signal(signal.SIGKILL)
        run.communicate()
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL
        kills += 1
    assert kills == 2
    whole = train.fit(train.training_step(loss, OPTIMIZER), state(), loader(), steps=STEPS, log_every=1, progress=False)
    rows = train.CSVLog(tmp_path / "log.csv").rows()
    assert [(int(row["step"]), float(row["loss"])) for row in rows] == [
        (row["step"], row["loss"]) for row in whole.history
    ]
    with io.CheckpointManager(tmp_path / "checkpoints") as checkpoints:
        assert checkpoints.steps() == [STEPS - 1, STEPS]
