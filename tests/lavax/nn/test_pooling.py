"""Pooling, against its definition in NumPy; gradients against differences in float64, ties by hand."""
from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.nn.windows import check_derivatives, pooled
from tests.lavax.numpy.arrays import BOOL, F32, I32, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

# name: what it does to a row of elements, what stands for none
FOLDS: dict[str, tuple[Callable[[np.ndarray], Any], float]] = {
    "max_pool": (np.max, -math.inf),
    "min_pool": (np.min, math.inf),
    "sum_pool": (np.sum, 0.0),
    "avg_pool": (np.mean, 0.0),
}


def theirs(name: str, window: Any, strides: Any, pads: Any, dilation: Any, axes: Any) -> Callable[..., np.ndarray]:
    fold, fill = FOLDS[name]
    return lambda x: pooled(x.astype(np.float64), window, strides, pads, dilation, axes, fold, fill).astype(F32)


@pytest.mark.parametrize("name", FOLDS)
def test_every_rank(name: str) -> None:
    pool = getattr(nn, name)
    grid = product((1, 2, 3), ((0, 0), (1, 0), (-1, 2)), (1, 2))
    for stride, pad, dilation in grid:
        for shape, window in (((7,), (2,)), ((3, 6), (3,)), ((2, 5, 6), (2, 3)), ((1, 4, 5, 6), (2, 1, 2))):
            count = len(window)
            numbers = [(number,) * count for number in (stride, pad, dilation)]
            axes = range(len(shape) - count, len(shape))
            expected = theirs(name, window, *numbers, axes)
            check(lambda x: pool(x, window, stride, [pad] * count, dilation), expected, sample(shape))  # noqa: B023


@pytest.mark.parametrize("name", FOLDS)
def test_chosen_axes(name: str) -> None:
    x = sample((2, 5, 6, 3))
    expected = theirs(name, (2, 3), (2, 1), [(0, 1), (1, 1)], (1, 1), (1, 2))
    check(lambda x: getattr(nn, name)(x, (2, 3), (2, 1), [(0, 1), (1, 1)], axes=(1, 2)), expected, x)
    turned = theirs(name, (3, 2), (1, 2), [(1, 1), (0, 1)], (1, 1), (2, 1))
    check(lambda x: getattr(nn, name)(x, (3, 2), (1, 2), [(1, 1), (0, 1)], axes=(2, -3)), turned, x)
    same = theirs(name, (2, 2), (2, 2), [(0, 0), (0, 1)], (1, 1), (2, 3))
    check(lambda x: getattr(nn, name)(x, (2, 2), 2, "SAME"), same, x)


@pytest.mark.parametrize("dtype", [I32, U32, BOOL], ids=str)
def test_whole_numbers_and_truth_values(dtype: np.dtype) -> None:
    x = sample((3, 7), dtype)
    for name in ("max_pool", "min_pool", "sum_pool"):
        if dtype != BOOL or name != "sum_pool":
            fold, _ = FOLDS[name]
            expected = pooled(x, (3,), (2,), [(0, 0)], (1,), (1,), fold, 0)
            check(lambda x: getattr(nn, name)(x, (3,), 2), lambda _: expected.astype(dtype), x)  # noqa: B023
    ends = np.array([False, True]) if dtype == BOOL else np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    check(lambda x: nn.max_pool(x, (1,), padding=1), lambda x: np.concatenate([x[:1], x, x[:1]]), ends)
    check(lambda x: nn.min_pool(x, (1,), padding=1), lambda x: np.concatenate([x[1:], x, x[1:]]), ends)


def test_mean_of_elements_without_padding() -> None:
    x = sample((2, 5, 4))

    def mean(row: np.ndarray) -> Any:
        return np.nanmean(row)

    expected = pooled(x.astype(np.float64), (3, 2), (2, 1), [(1, 1), (0, 1)], (1, 1), (1, 2), mean, np.nan)
    found = nn.avg_pool(x, (3, 2), (2, 1), [(1, 1), (0, 1)], count_include_pad=False)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-6)


def test_infinities_and_nan() -> None:
    x = np.array([1, np.nan, 2, -np.inf, -np.inf, np.inf, 0], F32)
    with np.errstate(invalid="ignore"):
        check(lambda x: nn.max_pool(x, (2,)), lambda x: np.maximum(x[1:], x[:-1]), x)
        check(lambda x: nn.min_pool(x, (2,)), lambda x: np.minimum(x[1:], x[:-1]), x)


def test_windows_that_fit_nowhere() -> None:
    for name in FOLDS:
        check(lambda x: getattr(nn, name)(x, (4,)), lambda x: np.zeros((2, 0), F32), sample((2, 3)))  # noqa: B023
        check(lambda x: getattr(nn, name)(x, (2,)), lambda x: np.zeros((0, 2), F32), sample((0, 3)))  # noqa: B023
    check(lambda x: nn.sum_pool(x, (2,), padding=2), lambda x: np.zeros((2, 3), F32), sample((2, 0)))


@pytest.mark.parametrize("name", FOLDS)
def test_derivatives(name: str) -> None:
    for window, strides, padding, dilation in (
        ((2, 2), 2, "VALID", 1),
        ((3, 2), (2, 1), "SAME", 1),
        ((2, 3), 1, [(1, 2), (-1, 0)], (2, 1)),
        ((2, 1), (3, 3), "VALID", (1, 2)),
    ):
        pool = getattr(nn, name)
        check_derivatives(lambda x: pool(x, window, strides, padding, dilation), [sample((2, 6, 7))])  # noqa: B023


def test_the_first_of_equal_elements_has_the_gradient() -> None:
    """As in JAX: in row-major order of the window."""
    x = np.array([[1, 5, 5, 0], [5, 2, 5, 0], [7, 7, 7, 7], [7, 7, 8, 7]], F32)
    gradient = lx.grad(lambda x: lnp.sum(nn.max_pool(x, (2, 2), 2) * np.array([[1, 10], [100, 1000]], F32)))(x)
    np.testing.assert_array_equal(np.asarray(gradient), [[0, 1, 10, 0], [0, 0, 0, 0], [100, 0, 0, 0], [0, 0, 1000, 0]])
    overlapping = lx.grad(lambda x: lnp.sum(nn.max_pool(x, (2,))))(np.array([3, 3, 3, 1], F32))
    np.testing.assert_array_equal(np.asarray(overlapping), [1, 1, 1, 0])
    least = lx.grad(lambda x: lnp.sum(nn.min_pool(x, (3,), padding=1)))(np.array([2, 2, 4, 2], F32))
    np.testing.assert_array_equal(np.asarray(least), [2, 1, 0, 1])


def test_mean_gradient_by_hand() -> None:
    gradient = lx.grad(lambda x: 4 * lnp.sum(nn.avg_pool(x, (2, 2))))(np.zeros((3, 3), F32))
    np.testing.assert_array_equal(np.asarray(gradient), [[1, 2, 1], [2, 4, 2], [1, 2, 1]])


@pytest.mark.parametrize("name", FOLDS)
def test_batched_and_forward(name: str) -> None:
    x, tangent = sample((3, 4, 5)), sample((3, 4, 5), seed=1)

    def pool(x: Any) -> Any:
        return getattr(nn, name)(x, (2, 2), (2, 1), "SAME")

    np.testing.assert_array_equal(np.asarray(lx.vmap(pool)(x)), np.asarray(pool(x)))
    value, pushed = lx.jvp(pool, (x,), (tangent,))
    np.testing.assert_array_equal(np.asarray(value), np.asarray(pool(x)))
    _, pull = lx.vjp(pool, x)
    g = sample(value.shape, seed=2)
    pulled = np.asarray(pull(lnp.asarray(g))[0])
    np.testing.assert_allclose(np.sum(pulled * tangent), np.sum(np.asarray(pushed) * g), rtol=1e-4)


def test_what_does_not_fit() -> None:
    x = lnp.ones((4, 5))
    with pytest.raises(ShapeError, match=r"max_pool: a window of 3 axes needs as many, got f32\[4,5\]"):
        nn.max_pool(x, (1, 1, 1))
    with pytest.raises(ShapeError, match="avg_pool: axis 2 is not an axis"):
        nn.avg_pool(x, (2,), axes=(2,))
    with pytest.raises(ShapeError, match="min_pool: a window of 2 axes moves along as many"):
        nn.min_pool(x, (2, 2), axes=(1,))
    with pytest.raises(ShapeError, match=r"max_pool: window_shape must be a positive number.*got \(0, 2\)"):
        nn.max_pool(x, (0, 2))
    with pytest.raises(ShapeError, match=r"avg_pool: window_shape has an extent for each axis.*got 2"):
        nn.avg_pool(x, 2)
    with pytest.raises(DtypeError, match="sum_pool: not defined for truth values"):
        nn.sum_pool(np.ones((2, 2), BOOL), (2,))
