"""Checkpoints: written beside the training, the last ones kept, whole after a kill."""
from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.io import CheckpointManager


def state_of(step: int) -> dict[str, Any]:
    return {"w": np.full((2, 3), step, "f"), "step": np.int32(step), "key": lx.random.key(step)}


def bytes_of(leaf: Any) -> bytes:
    is_key = lx.numpy.issubdtype(lx.numpy.result_type(leaf), lx.dtypes.prng_key)
    return np.asarray(lx.random.key_data(leaf) if is_key else leaf).tobytes()


def test_the_last_ones_and_the_best_are_kept(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path / "run", keep=2, best="min") as checkpoints:
        for step, loss in enumerate([3.0, 1.0, 2.0, 5.0, 4.0]):
            checkpoints.save(step, state_of(step), extra={"position": 10 * step}, metric=loss)
        assert checkpoints.steps() == [1, 3, 4] and checkpoints.best_step() == 1
        latest, best = checkpoints.restore(state_of(0)), checkpoints.restore(state_of(0), step=1)
    assert (latest.step, latest.extra) == (4, {"position": 40})
    for found, step in ((latest.tree, 4), (best.tree, 1)):
        for one, other in zip(lx.tree.leaves(found), lx.tree.leaves(state_of(step)), strict=True):
            assert bytes_of(one) == bytes_of(other)


def test_no_metric_and_nan_are_never_the_best(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path, keep=1, best="max") as checkpoints:
        checkpoints.save(0, {})
        assert checkpoints.best_step() is None
        for step, accuracy in enumerate([float("nan"), 0.5, 0.75, float("nan"), 0.25], 1):
            checkpoints.save(step, {}, metric=accuracy)
        assert checkpoints.best_step() == 3 and checkpoints.steps() == [3, 5]


def test_arrays_may_be_donated_as_soon_as_save_returns(tmp_path: Path) -> None:
    @partial(lx.compile, donate_argnums=0)
    def step(state: Any) -> Any:
        return lx.tree.map(lambda leaf: leaf * 2 + 1, state)

    state = {"w": lnp.zeros((300, 300)), "v": lnp.ones(5)}
    expected = []
    with CheckpointManager(tmp_path, keep=10) as checkpoints:
        for number in range(5):
            expected.append(lx.tree.map(np.array, state))
            checkpoints.save(number, state)
            state = step(step(state))
        for number, right in enumerate(expected):
            found = checkpoints.restore(state, number).tree
            np.testing.assert_array_equal(found["w"], right["w"])
            np.testing.assert_array_equal(found["v"], right["v"])


def test_another_structure_is_refused_by_path(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as checkpoints:
        with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
            checkpoints.restore({})
        checkpoints.save(3, {"model": {"w": np.zeros(3, "f")}})
        with pytest.raises(ValueError, match=r"step_3\.safetensors: model\.bias is not in the file"):
            checkpoints.restore({"model": {"bias": np.zeros(3, "f"), "w": np.zeros(3, "f")}})
        with pytest.raises(ValueError, match=r"model\.w has the shape \[3\], `like` has \[4\]"):
            checkpoints.restore({"model": {"w": np.zeros(4, "f")}})
        with pytest.raises(FileNotFoundError, match=r"no checkpoint of step 4; there are \[3\]"):
            checkpoints.restore({"model": {"w": np.zeros(3, "f")}}, step=4)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="keep must be at least 1, got 0"):
        CheckpointManager(tmp_path, keep=0)
    with pytest.raises(ValueError, match="best is 'min', 'max' or None, got 'least'"):
        CheckpointManager(tmp_path, best="least")
    with CheckpointManager(tmp_path) as checkpoints, pytest.raises(ValueError, match="must not be negative, got -1"):
        checkpoints.save(-1, {})


def test_an_error_of_the_thread_is_raised_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checkpoints = CheckpointManager(tmp_path / "file")
    checkpoints.save(0, {"w": np.zeros(1, "f")})
    with pytest.raises(OSError, match="file"):
        checkpoints.wait()
    checkpoints.close()


_ENDLESS = """
import itertools, sys
import numpy as np
from lavax.io import CheckpointManager
checkpoints = CheckpointManager(sys.argv[1], keep=2)
for step in itertools.count():
    checkpoints.save(step, {"w": np.full(1 << 20, step, "f")}, extra=step)
    print(step, flush=True)
"""


def test_a_killed_save_leaves_whole_files(tmp_path: Path) -> None:
    draw = random.Random(0)
    for _ in range(4):
        saving = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(tmp_path)], stdout=subprocess.PIPE)
        assert saving.stdout is not None
        saving.stdout.readline()
        time.sleep(0.2 * draw.random())
        saving.send_signal(signal.SIGKILL)
        saving.communicate()
        with CheckpointManager(tmp_path, keep=2) as checkpoints:
            for step in checkpoints.steps():
                found = checkpoints.restore({"w": np.zeros(1 << 20, "f")}, step)
                assert found.extra == step and np.all(np.asarray(found.tree["w"]) == step)
            assert all(path.suffix == ".safetensors" for path in tmp_path.iterdir()), "nothing half written is left"


def test_arrays_of_numpy_may_be_written_to_as_soon_as_save_returns(tmp_path: Path) -> None:
    numbers = np.zeros(1 << 20, "f")
    with CheckpointManager(tmp_path) as checkpoints:
        checkpoints.save(0, {"x": numbers})
        numbers += 1
        assert not np.any(checkpoints.restore({"x": numbers}).tree["x"])
