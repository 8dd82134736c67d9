"""The training loop: what it computes, writes, saves and resumes."""
from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import io, train
from tests.lavax.train.regression import INPUTS, OPTIMIZER, TARGETS, loader, loss, state

pytestmark = pytest.mark.usefixtures("reference_backend")

STEP = train.training_step(loss, OPTIMIZER)


def losses(fitted: train.Fitted) -> dict[float, float]:
    return {row["step"]: row["loss"] for row in fitted.history if "loss" in row}


def assert_same(one: Any, other: Any) -> None:
    assert lx.tree.structure(one) is lx.tree.structure(other)
    for path, leaf in lx.tree.leaves_with_path(one):
        assert bytes_of(leaf) == bytes_of(dict(lx.tree.leaves_with_path(other))[path]), path


def bytes_of(leaf: Any) -> bytes:
    is_key = lx.numpy.issubdtype(lx.numpy.result_type(leaf), lx.dtypes.prng_key)
    return np.asarray(lx.random.key_data(leaf) if is_key else leaf).tobytes()


def test_it_goes_down_the_gradient() -> None:
    fitted = train.fit(STEP, state(), loader(), steps=150, progress=False)
    first, last = fitted.history[0], fitted.history[-1]
    assert (first["step"], last["step"], fitted.step, len(fitted.history)) == (10, 150, 150, 15)
    assert last["loss"] < 0.01 < 0.1 < first["loss"] and not fitted.interrupted
    assert last["examples per second"] > 0 and last["largest"] > 0 and "device memory" in last
    assert int(fitted.state.step) == 150


def test_one_step_is_the_optimizer_s() -> None:
    begun = state(noise=False)
    (_, gradients) = lx.value_and_grad(lambda m: loss(m, (INPUTS, TARGETS))[0])(begun.model)
    updates, _ = OPTIMIZER.update(gradients, begun.optimizer, begun.model)
    wanted = lx.optim.apply_updates(begun.model, updates)
    after, metrics = STEP(begun, (INPUTS, TARGETS))
    np.testing.assert_allclose(after.model.weight, wanted.weight, rtol=1e-6)
    assert set(metrics) == {"loss", "largest"} and begun.model.weight.is_donated


def test_resumed_training_has_the_same_losses_bit_for_bit(tmp_path: Path) -> None:
    whole = train.fit(STEP, state(), loader(), steps=20, log_every=1, progress=False)
    first = io.CheckpointManager(tmp_path, keep=9)
    begun = train.fit(
        STEP, state(), loader(), steps=8, log_every=1, progress=False, checkpoints=first, checkpoint_every=3
    )
    assert first.steps() == [3, 6, 8]
    resumed = train.fit(
        STEP, state(), loader(), steps=20, log_every=1, progress=False, checkpoints=io.CheckpointManager(tmp_path)
    )
    assert losses(begun) | losses(resumed) == losses(whole)
    assert sorted(losses(resumed)) == list(range(9, 21))
    assert_same(resumed.state, whole.state)
    again = train.fit(STEP, state(), loader(), steps=20, progress=False, checkpoints=io.CheckpointManager(tmp_path))
    assert again.history == [] and again.step == 20
    assert_same(again.state, whole.state)


def test_nothing_is_traced_after_the_first_step(tmp_path: Path) -> None:
    step = train.training_step(loss, OPTIMIZER)
    checkpoints = io.CheckpointManager(tmp_path)
    train.fit(step, state(), loader(), steps=1, progress=False, checkpoints=checkpoints)
    resumed = train.fit(step, state(), loader(), steps=3, progress=False, checkpoints=checkpoints)
    before = lx.profiler.counters()
    train.fit(step, resumed.state, loader(), steps=15, progress=False)
    assert lx.profiler.counters()["traces"] == before["traces"]


def test_evaluation_and_the_best_checkpoint(tmp_path: Path) -> None:
    metrics = lx.compile(lambda state, batch: loss(state.model, batch)[0])
    everything = [(INPUTS[:30], TARGETS[:30]), (INPUTS[30:], TARGETS[30:])]
    checkpoints = io.CheckpointManager(tmp_path, keep=1, best="min")
    fitted = train.fit(
        STEP,
        state(),
        loader(),
        steps=25,
        progress=False,
        evaluate=lambda state: train.evaluate(metrics, state, everything),
        evaluate_every=10,
        checkpoints=checkpoints,
        checkpoint_every=10,
    )
    evaluated = {row["step"]: row["eval/loss"] for row in fitted.history if "eval/loss" in row}
    assert list(evaluated) == [10, 20, 25]
    wanted = float(loss(fitted.state.model, (INPUTS, TARGETS))[0])
    assert evaluated[25] == pytest.approx(wanted, rel=1e-5), "batches of 30 and 20 count by their sizes"
    assert [row["step"] for row in fitted.history] == [10, 10, 20, 20, 25, 25]
    assert checkpoints.steps() == [25], "the last one is the best"


def test_losses_are_read_late() -> None:
    """When the loop reads the loss of a step, the next steps are submitted already."""
    submitted, read = [], []

    class Loss:
        shape = ()

        def __init__(self, number: int) -> None:
            self.number = number

        def __float__(self) -> float:
            read.append((self.number, len(submitted)))
            return 0.0

    def step(state: Any, batch: Any) -> Any:
        submitted.append(batch)
        return state, Loss(len(submitted))

    train.fit(step, np.zeros(1), [np.zeros(1)] * 3, steps=9, log_every=3, lag=2, progress=False)
    assert read == [(1, 5), (2, 5), (3, 5), (4, 8), (5, 8), (6, 8), (7, 9), (8, 9), (9, 9)]


def test_ctrl_c_saves_and_returns(tmp_path: Path) -> None:
    calls = 0

    def step(state: Any, batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 7:
            signal.raise_signal(signal.SIGINT)
        return STEP(state, batch)

    checkpoints = io.CheckpointManager(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    stopped = train.fit(step, state(), loader(), steps=20, log_every=1, progress=False, checkpoints=checkpoints)
    assert (stopped.interrupted, stopped.step, checkpoints.steps()) == (True, 7, [7])
    assert signal.getsignal(signal.SIGINT) is handler
    rest = train.fit(STEP, state(), loader(), steps=20, log_every=1, progress=False, checkpoints=checkpoints)
    whole = train.fit(STEP, state(), loader(), steps=20, log_every=1, progress=False)
    assert losses(stopped) | losses(rest) == losses(whole) and not rest.interrupted


@pytest.fixture
def heeded_interrupts() -> Iterator[None]:
    """Python's own handler: a shell that runs tests in the background has interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_second_ctrl_c_stops_at_once(heeded_interrupts: None) -> None:
    def step(state: Any, batch: Any) -> Any:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        return STEP(state, batch)

    with pytest.raises(KeyboardInterrupt):
        train.fit(step, state(), loader(), steps=3, progress=False)


def test_it_runs_in_other_threads() -> None:
    found: list[train.Fitted] = []
    run = threading.Thread(
        target=lambda: found.append(train.fit(STEP, state(), loader(), steps=3, progress=False))
    )
    run.start()
    run.join()
    assert found[0].step == 3


def test_data_without_a_number_of_steps_are_gone_through_once() -> None:
    assert train.fit(STEP, state(), loader(), progress=False).step == len(loader())
    batches = [(INPUTS, TARGETS)] * 3
    assert train.fit(STEP, state(), iter(batches), progress=False).step == 3


def test_epochs_count_from_the_beginning_of_training(tmp_path: Path) -> None:
    whole = train.fit(STEP, state(), loader(), epochs=3, progress=False, log_every=1)
    assert whole.step == 3 * len(loader())
    checkpoints = io.CheckpointManager(tmp_path)
    first = train.fit(STEP, state(), loader(), steps=8, progress=False, log_every=1, checkpoints=checkpoints)
    rest = train.fit(STEP, state(), loader(), epochs=3, progress=False, log_every=1, checkpoints=checkpoints)
    assert [row["loss"] for row in first.history + rest.history] == [row["loss"] for row in whole.history]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "steps and epochs": (dict(epochs=2), "give steps or epochs, not both, got 5 and 2"),
    "epochs of an iterator": (dict(data=iter([]), steps=None, epochs=2), "no length, so say by steps, not by epochs"),
    "no epochs": (dict(steps=None, epochs=0), "epochs must be at least 1, got 0"),
    "a count": (dict(log_every=0), "log_every must be at least 1, got 0"),
    "an iterator": (dict(data=iter([(INPUTS, TARGETS)]), steps=5), "no more batches after 1 of 5 steps"),
    "no data": (dict(data=[], steps=5), "no more batches after 0 of 5 steps"),
    "an array as a metric": (dict(step=lambda s, b: (s, {"a": b[0]})), r"a has the shape \(8, 3\)"),
    "no metrics": (dict(step=lambda s, b: s), r"step must return \(state, metrics\), got State"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name: str) -> None:
    arguments, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        train.fit(**{"step": STEP, "state": state(), "data": loader(), "steps": 5, "progress": False, **arguments})


def test_data_that_cannot_go_to_a_position_are_refused(tmp_path: Path) -> None:
    checkpoints = io.CheckpointManager(tmp_path)
    batches = [(INPUTS, TARGETS)]
    train.fit(STEP, state(), batches, steps=2, progress=False, checkpoints=checkpoints)
    with pytest.raises(ValueError, match="checkpoint of step 2, but the data cannot go to its position"):
        train.fit(STEP, state(), batches, steps=4, progress=False, checkpoints=checkpoints)
    with pytest.raises(ValueError, match=r"has checkpoints of the steps \[2\], .* use another folder"):
        train.fit(STEP, state(), batches, steps=3, progress=False, checkpoints=checkpoints, resume=False)


_ON_THE_DEVICE = """
import sys
from functools import cached_property
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.device.instance import choose_device
from lavax.tracer.values.backend import register

class Staged(VulkanBackend):
    device = cached_property(lambda self: Device(choose_device(None), local_only=True))

if sys.argv[2] == "staged":
    register(Staged)
from lavax import io, profiler, train
from tests.lavax.train.regression import OPTIMIZER, loader, loss, state
step = train.training_step(loss, OPTIMIZER)
manager = lambda: io.CheckpointManager(sys.argv[1])
whole = train.fit(step, state(), loader(), steps=12, log_every=1, progress=False)
before = profiler.counters()
train.fit(step, state(), loader(), steps=5, log_every=1, progress=False, checkpoints=manager(), checkpoint_every=2)
rest = train.fit(step, state(), loader(), steps=12, log_every=1, progress=False, checkpoints=manager())
after = profiler.counters()
assert [row["loss"] for row in rest.history] == [row["loss"] for row in whole.history[5:]]
assert all(after[name] == before[name] for name in ("traces", "pipelines", "glsl_compiles")), (before, after)
assert rest.history[-1]["device memory"] > 0
"""


@pytest.mark.parametrize("uploads", ["mapped", "staged"])
def test_the_same_on_a_device(uploads: str, tmp_path: Path) -> None:
    """With uploads by a thread, donation, and checkpoints on the way: the same losses, and nothing new is compiled."""
    program = [sys.executable, "-c", _ON_THE_DEVICE, str(tmp_path), uploads]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
