"""CTC, against sums over all paths, PyTorch and recorded values."""
from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from lavax.base.errors import DtypeError, ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

# The last target needs 6 steps, for the blanks between equal classes, and has 4.
LOGITS = sample((9, 4, 5))
TARGETS = np.array([[1, 2, 3, 4], [4, 4, 2, 0], [0, 0, 0, 0], [1, 1, 2, 2]], np.int32)
STEPS, LENGTHS = np.array([9, 8, 5, 4], np.int32), np.array([4, 3, 0, 4], np.int32)
# By torch 2.13: the losses of LOGITS, and the greatest gradients of their mean with zero_infinity, by sequence.
RECORDED = [6.306192, 6.115514, 12.05019, np.inf]
SLOPES = [0.03914811, 0.06335144, 0.2411047, 0]


def mean(logits: Any) -> Any:
    return nn.ctc_loss(nn.log_softmax(logits), TARGETS, STEPS, LENGTHS, zero_infinity=True)


def test_losses_are_those_recorded() -> None:
    logs = nn.log_softmax(LOGITS)
    close(nn.ctc_loss(logs, TARGETS, STEPS, LENGTHS, reduction="none"), RECORDED)
    finite = np.array(RECORDED[:3])
    close(nn.ctc_loss(logs, TARGETS, STEPS, LENGTHS, reduction="sum", zero_infinity=True), finite.sum())
    close(mean(LOGITS), (finite / [4, 3, 1]).sum() / 4)
    close(np.abs(lx.grad(mean)(LOGITS)).max((0, 2)), SLOPES)


def test_losses_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of CTC")
    logits = torch.tensor(LOGITS, requires_grad=True)
    given = torch.tensor(TARGETS), torch.tensor(STEPS), torch.tensor(LENGTHS)
    losses = torch.nn.functional.ctc_loss(logits.log_softmax(-1), *given, reduction="none")
    close(nn.ctc_loss(nn.log_softmax(LOGITS), TARGETS, STEPS, LENGTHS, reduction="none"), losses.detach().numpy())
    torch.nn.functional.ctc_loss(logits.log_softmax(-1), *given, zero_infinity=True).backward()
    close(lx.grad(mean)(LOGITS), logits.grad.numpy())


@pytest.mark.parametrize("target", [(), (1,), (2, 2), (1, 2, 1)], ids=str)
def test_losses_are_sums_over_paths(target: tuple[int, ...]) -> None:
    chances = np.exp(nn.log_softmax(sample((4, 3)))).astype(np.float64)
    total = 0.0
    for path in product(range(3), repeat=4):
        if tuple(label for label, _ in groupby(path) if label != 0) == target:
            total += np.prod(chances[np.arange(4), path])
    padded = np.array([*target, 0, 0, 0][:3], np.int32)
    arguments = padded, np.int32(4), np.int32(len(target))
    close(nn.ctc_loss(np.log(chances).astype(np.float32), *arguments, reduction="sum"), -np.log(total))


def test_another_blank() -> None:
    renamed = np.where(TARGETS == 4, 0, TARGETS)
    moved = LOGITS[:, :, [4, 1, 2, 3, 0]]
    found = nn.ctc_loss(nn.log_softmax(moved[:, :2]), renamed[:2], STEPS[:2], LENGTHS[:2], 4, "none")
    close(found, RECORDED[:2])


def test_derivatives() -> None:
    def loss(logits: Any, targets: Any, steps: Any, lengths: Any) -> Any:
        return nn.ctc_loss(nn.log_softmax(logits), targets, steps, lengths, reduction="none")

    check_derivatives(loss, [LOGITS[:4, :2]], [TARGETS[:2, :2], np.array([4, 3], np.int32), np.array([2, 1], np.int32)])


def test_classes_without_probability() -> None:
    logs = np.array([[[-np.log(2), -np.log(2), -np.inf]]] * 2, np.float32)
    loss, slope = lx.value_and_grad(lambda x: nn.ctc_loss(
        x, np.array([[1]], np.int32), np.array([2], np.int32), np.array([1], np.int32)))(logs)  # fmt: skip
    close(loss, -np.log(0.75))
    close(slope[:, 0], [[-1 / 3, -2 / 3, 0]] * 2)


def test_what_does_not_fit() -> None:
    logs = nn.log_softmax(LOGITS)
    refused: list[tuple[type[Exception], str, Any]] = [
        (ShapeError, r"log_probs are \[T, N, C\] and targets \[N, S\], got f32\[9,4,5\] and i32\[16\]",
         lambda: nn.ctc_loss(logs, TARGETS.ravel(), STEPS, LENGTHS)),
        (ShapeError, r"input_lengths must be \[4\], got i32\[2\]",
         lambda: nn.ctc_loss(logs, TARGETS, STEPS[:2], LENGTHS)),
        (DtypeError, r"targets must be integers, got f32\[4,4\]",
         lambda: nn.ctc_loss(logs, TARGETS.astype(np.float32), STEPS, LENGTHS)),
        (ValueError, r"blank=5 is none of the 5 classes", lambda: nn.ctc_loss(logs, TARGETS, STEPS, LENGTHS, 5)),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
