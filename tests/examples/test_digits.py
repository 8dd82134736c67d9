"""The digits example: it learns, its step is few kernels, and calling it again only submits."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from benchmarks.digits import Training, count_kernels, update
from examples import digits

BATCH = 64


@pytest.fixture(scope="module")
def training() -> Training:
    """The step, called until its arrays take places that others of its own left: for those it has commands."""
    made = Training()
    for _ in range(50):
        made.step()
    return made


def test_the_images_are_split_into_four_fifths_and_one() -> None:
    first, held_out = digits.training_and_test_images(seed=5)
    assert (len(first.labels), len(held_out.labels)) == (1438, 359)
    whole = np.concatenate([first.pixels, held_out.pixels])
    reference, _ = digits.training_and_test_images(seed=6)
    assert not np.array_equal(first.pixels, reference.pixels)
    assert len(np.unique(whole, axis=0)) == 1797, "an image is in both parts, or in none"
    assert (whole.min(), whole.max()) == (0, 1)


def test_a_few_epochs_teach_most_of_it() -> None:
    training, test = digits.training_and_test_images(seed=0)
    network, curve = digits.train(training, seed=0, epochs=4, batch_size=BATCH)
    assert curve[-1] < curve[0] / 4
    found = float(digits.accuracy(network, test.pixels, test.labels))
    scores = np.asarray(network(test.pixels))
    assert found == pytest.approx(np.mean(scores.argmax(axis=1) == test.labels), rel=1e-6)
    assert found > 0.9


def test_the_step_is_few_kernels() -> None:
    network, state, images, labels, rate = digits.example_arguments(BATCH)
    gradient = lx.compile(lx.value_and_grad(digits.cross_entropy))
    step = count_kernels(digits.step, network, state, images, labels, rate)
    assert step <= 20
    assert step - count_kernels(gradient, network, images, labels) <= 2
    assert count_kernels(update, network, state, network, rate) <= 2


def test_calling_the_step_again_only_submits(training: Training) -> None:
    before = lx.profiler.counters()
    for _ in range(100):
        training.step()
    after = lx.profiler.counters()
    done = {name: after[name] - before[name] for name in after if not name.startswith("bytes")}
    assert done == {name: 100 * (name == "submits") for name in done}


def test_the_step_needs_no_more_memory_with_time(training: Training) -> None:
    from lavax.backends.vulkan.device.device import get_device  # late: it needs a driver

    pool = get_device().arrays
    seen: set[Any] = set()
    for _ in range(4):
        for _ in range(50):
            training.step()
        use = pool.use()
        seen.add((use.in_use, use.allocated))
    assert len(seen) == 1


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "here"
    monkeypatch.setattr(sys, "argv", ["digits.py", "--seed", "1", "--epochs", "1", "--out", str(out)])
    digits.main()
    printed = capsys.readouterr()
    assert f"device: {lx.default_device().name}" in printed.out
    assert re.search(r"^accuracy: \d+\.\d %$", printed.out, re.MULTILINE)
    assert "1/1" in printed.err, "the progress bar"
    assert (out / "digits.png").read_bytes().startswith(b"\x89PNG")
    lx.ir.verify(lx.ir.parse((out / "digits.ir.txt").read_text(encoding="utf-8")))
    assert "kernel k0 kind=" in (out / "digits.kernels.txt").read_text(encoding="utf-8")
