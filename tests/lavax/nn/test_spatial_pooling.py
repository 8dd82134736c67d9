"""Pooling with PyTorch's windows: against its definition, PyTorch, and in a graph."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.nn.windows import check_derivatives
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")

EXTENTS = (5, 6, 7)


def by_definition(fold: Any, x: np.ndarray, k: int, s: int, p: int, ceil_mode: bool) -> list[float]:
    """`fold(elements, how many places of the window lie in the input or its padding)` of each window of a vector."""
    found = []
    for start in range(-p, len(x) + p, s):
        if start + k > len(x) + p and not (ceil_mode and start < len(x)):
            break
        elements = x[max(start, 0) : start + k]
        found.append(fold(elements, min(start + k, len(x) + p) - start))
        if start + k >= len(x) + p:
            break
    return found


@pytest.mark.parametrize("extent", EXTENTS)
def test_windows_of_a_vector(extent: int) -> None:
    x = sample((1, extent))
    for k, s, p, ceil_mode in product((2, 3), (1, 2, 3), (0, 1), (False, True)):
        arguments = k, s, p
        close(nn.max_pool1d(x, *arguments, ceil_mode=ceil_mode)[0],
              by_definition(lambda e, n: e.max(), x[0], *arguments, ceil_mode))
        for counted, fold in ((True, lambda e, n: e.sum() / n), (False, lambda e, n: e.mean())):
            found = nn.avg_pool1d(x, *arguments, ceil_mode=ceil_mode, count_include_pad=counted)
            close(found[0], by_definition(fold, x[0], *arguments, ceil_mode))
    for size in (1, 2, 3, 4, 9):
        pieces = [x[0, i * extent // size : -(-(i + 1) * extent // size)] for i in range(size)]
        close(nn.adaptive_avg_pool1d(x, size)[0], [piece.mean() for piece in pieces])
        close(nn.adaptive_max_pool1d(x, size)[0], [piece.max() for piece in pieces])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_windows_are_those_of_pytorch(count: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is the oracle of pooling")
    functional = torch.nn.functional
    x = sample((2, 3, 7, 6, 5)[: count + 2])
    given = torch.tensor(x)
    for k, s, p, ceil_mode in product((2, 3), (None, 2), (0, 1), (False, True)):
        for pad in (False, True):
            expected = getattr(functional, f"avg_pool{count}d")(given, k, s, p, ceil_mode, pad)
            close(getattr(nn, f"avg_pool{count}d")(x, k, s, p, ceil_mode, pad), expected.numpy())
        expected = getattr(functional, f"max_pool{count}d")(given, k, s, p, 1, ceil_mode)
        close(getattr(nn, f"max_pool{count}d")(x, k, s, p, 1, ceil_mode), expected.numpy())
    for kind in ("avg", "max"):
        name = f"adaptive_{kind}_pool{count}d"
        close(getattr(nn, name)(x, 4), getattr(functional, name)(given, 4).numpy())


def test_layers_are_the_functions() -> None:
    x = sample((2, 3, 7, 6))
    close(nn.MaxPool2d(3, 2, 1)(x), nn.max_pool2d(x, 3, 2, 1))
    close(nn.AvgPool2d(3, count_include_pad=False, padding=1)(x), nn.avg_pool2d(x, 3, None, 1, False, False))
    close(nn.AdaptiveAvgPool2d((1, None))(x), x.mean(2, keepdims=True))
    close(nn.AdaptiveMaxPool1d(1)(x), x.max(3, keepdims=True))
    close(nn.AvgPool3d(2)(x), nn.avg_pool3d(x, 2))
    assert lx.tree.leaves(nn.MaxPool3d(2)) == []
    close(nn.avg_pool2d(x, 2, divisor_override=3), nn.avg_pool2d(x, 2) * (4 / 3))


@pytest.mark.parametrize("pool", [
    lambda x: nn.max_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: nn.avg_pool2d(x, 3, 2, 1, True, False),
    lambda x: nn.adaptive_avg_pool2d(x, 3), lambda x: nn.adaptive_max_pool2d(x, (2, 4)),
])  # fmt: skip
def test_derivatives(pool: Any) -> None:
    check_derivatives(lambda x: pool(lnp.sin(x)), [sample((1, 2, 5, 6))])


def test_sums_of_16_bit_numbers_are_exact() -> None:
    x = lnp.full((1, 1, 300, 300), 1000.0, "float16")
    assert float(nn.adaptive_avg_pool2d(x, 1)[0, 0, 0, 0]) == 1000
    assert nn.avg_pool2d(x[:, :, :9, :9], 3).dtype == np.float16


def test_what_does_not_fit() -> None:
    x = sample((1, 1, 4, 4))
    refused: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "max_pool2d: padding=2 must lie between 0 and half of kernel_size=3",
         lambda: nn.max_pool2d(x, 3, padding=2)),
        (ShapeError, r"windows of \[5, 5\] do not fit into f32\[1,1,4,4\]", lambda: nn.avg_pool2d(x, 5)),
        (ShapeError, "output_size is a number from 1 on, or 2 of them, got 0", lambda: nn.adaptive_avg_pool2d(x, 0)),
        (ShapeError, "a window of 2 axes needs as many", lambda: nn.max_pool2d(x[0, 0, 0], 2)),
    ]  # fmt: skip
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
