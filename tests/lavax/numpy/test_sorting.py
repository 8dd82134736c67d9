"""Sorting, searching, sets and cumulative functions against NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ConcretizationError, ShapeError
from tests.lavax.numpy.arrays import BOOL, F32, I32, NUMBERS, ROUNDING, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")
DTYPES = (F32, I32, U32, BOOL)


def with_nan(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.ravel()[::5] = np.nan
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape], ids=str)
def test_sort_and_argsort(shape: tuple[int, ...], dtype: np.dtype) -> None:
    x = sample(shape, dtype)
    for axis in (-1, 0, None):
        check(lambda x, axis=axis: lnp.sort(x, axis), lambda x, axis=axis: np.sort(x, axis), x, rtol=0, atol=0)
        check(lambda x, a=axis: lnp.argsort(x, a), lambda x, a=axis: np.argsort(x, a, kind="stable"), x, rtol=0, atol=0)


def test_nan_is_last_and_descending_is_stable() -> None:
    x = with_nan(np.round(sample((40,))))
    check(lnp.sort, np.sort, x)
    check(lnp.argsort, lambda x: np.argsort(x, kind="stable"), x)
    y = np.array([1, 3, 1, 3, 2], F32)
    np.testing.assert_array_equal(np.asarray(lnp.argsort(y, descending=True)), [1, 3, 4, 0, 2])
    np.testing.assert_array_equal(np.asarray(lnp.sort(y, descending=True)), [3, 3, 2, 1, 1])


def test_lexsort_partition_and_top_k() -> None:
    first, second = sample((30,), I32, -2, 2), sample((30,), I32, -2, 2, seed=1)
    check(lambda a, b: lnp.lexsort((a, b)), lambda a, b: np.lexsort((a, b)), first, second)
    x = sample((4, 9))
    for kth in (0, 3, -2):
        parted = np.asarray(lnp.partition(x, kth))
        np.testing.assert_array_equal(parted[:, kth], np.sort(x)[:, kth])
        positions = np.asarray(lnp.argpartition(x, kth, 0 if kth < 3 else -1))
        assert positions.shape == x.shape
    found = lnp.top_k(x, 3)
    np.testing.assert_array_equal(np.asarray(found.values), -np.sort(-x)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(found.indices), 1), np.asarray(found.values))
    with pytest.raises(ShapeError, match="k=10"):
        lnp.top_k(x, 10)
    with pytest.raises(ShapeError, match="kth=9"):
        lnp.partition(x, 9)
    with pytest.raises(ShapeError, match="no axis"):
        lnp.sort(1.0)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searchsorted(dtype: np.dtype, side: Any) -> None:
    row, values = np.sort(sample((9,), dtype)), sample((2, 5), dtype, seed=1)
    check(lambda a, v: lnp.searchsorted(a, v, side), lambda a, v: np.searchsorted(a, v, side), row, values)


def test_searchsorted_of_other_kinds() -> None:
    row = np.append(np.sort(sample((7,))), np.nan).astype(F32)
    check(lnp.searchsorted, np.searchsorted, row, np.array([0.0, np.nan, np.inf, -np.inf], F32))
    x = sample((7,))
    order = np.argsort(x)
    check(lambda a, s: lnp.searchsorted(a, a, sorter=s), lambda a, s: np.searchsorted(a, a, sorter=s), x, order)
    with pytest.raises(ShapeError, match="one axis"):
        lnp.searchsorted(np.zeros((2, 2), F32), 1.0)
    with pytest.raises(ValueError, match="side"):
        lnp.searchsorted(x, 1.0, "middle")  # type: ignore[arg-type]


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right: bool) -> None:
    x, bins = np.round(sample((20,))), np.array([-2, -1, 0, 2], F32)
    check(lambda x, b: lnp.digitize(x, b, right), lambda x, b: np.digitize(x, b, right), x, bins)
    check(lambda x, b: lnp.digitize(x, b, right), lambda x, b: np.digitize(x, b, right), x, bins[::-1].copy())


CUMULATIVE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cumsum": (lnp.cumsum, np.cumsum),
    "cumprod": (lnp.cumprod, np.cumprod),
    "nancumsum": (lnp.nancumsum, np.nancumsum),
    "nancumprod": (lnp.nancumprod, np.nancumprod),
    "cummax": (lnp.cummax, np.maximum.accumulate),
    "cummin": (lnp.cummin, np.minimum.accumulate),
}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape], ids=str)
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = CUMULATIVE[name]
    for dtype in NUMBERS:
        x = sample(shape, dtype, -1.4, 1.4)
        options: dict[str, Any] = {} if dtype == F32 or "max" in name or "min" in name else {"dtype": dtype}
        for axis in (0, -1):
            check(
                lambda x, axis=axis: ours(x, axis=axis),
                lambda x, axis=axis, options=options: theirs(x, axis=axis, **options),
                x,
                atol=4 * ROUNDING,
            )


def test_cumulative_of_truth_values_and_of_all() -> None:
    x = sample((3, 4), BOOL)
    check(lnp.cumsum, lambda x: np.cumsum(x, dtype=I32), x)
    check(lambda x: lnp.cummax(x, 1), lambda x: np.maximum.accumulate(x, 1), x)
    check(lambda x: lnp.cumsum(x, dtype="float32"), lambda x: np.cumsum(x, dtype=F32), x)
    y = sample((3, 4))
    initial = np.cumulative_sum(y, axis=1, include_initial=True)
    check(lambda y: lnp.cumulative_sum(y, axis=1, include_initial=True), lambda y: initial, y)
    check(lambda y: lnp.cumulative_prod(y, axis=0), lambda y: np.cumprod(y, 0), y)
    with pytest.raises(ShapeError, match="axis="):
        lnp.cumulative_sum(y)
    check(lambda x: lnp.cumlogsumexp(x, 1), lambda x: np.logaddexp.accumulate(x, 1), y)
    check(lambda x: lnp.cummax(x, 1, reverse=True), lambda x: np.maximum.accumulate(x[:, ::-1], 1)[:, ::-1], y)


def same(found: Any, expected: Any) -> None:
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), right)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unique(dtype: np.dtype) -> None:
    x = np.round(sample((4, 6), dtype)).astype(dtype)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    same(lnp.unique(x, True, True, True), expected)
    same([lnp.unique(x)], [np.unique(x)])
    same(lnp.unique_all(x), expected)
    same(lnp.unique_counts(x), [expected[0], expected[3]])
    same(lnp.unique_inverse(x), [expected[0], expected[2]])
    same([lnp.unique_values(x)], [expected[0]])
    rows = sample((9, 2), I32, 0, 1).astype(dtype)
    same([lnp.unique(rows, axis=0), lnp.unique(rows, axis=1)], [np.unique(rows, axis=0), np.unique(rows, axis=1)])
    empty = np.zeros((0,), dtype)
    assert lnp.unique(empty).shape == lnp.unique_counts(empty).counts.shape == (0,)


def test_counts_of_the_first_distinct_elements() -> None:
    """The last of them is counted without what comes behind it."""
    x = np.array([3, 1, 1, 2, 2, 2, 5, 5, 7, 9], F32)
    for size, counts in ((0, []), (1, [2]), (3, [2, 3, 1]), (6, [2, 3, 1, 2, 1, 1]), (8, [2, 3, 1, 2, 1, 1, 0, 0])):
        found = lx.compile(lambda x, size=size: lnp.unique(x, return_counts=True, size=size)[1])(x)
        same([found, lnp.unique_counts(x, size=size).counts], [np.array(counts, I32)] * 2)


def test_nan_in_sets() -> None:
    x = np.array([np.nan, 1, np.nan, 1, 2], F32)
    same([lnp.unique(x), lnp.unique(x, equal_nan=False)], [np.unique(x), np.unique(x, equal_nan=False)])
    same([lnp.unique_values(x)], [np.array([1, 2, np.nan, np.nan], F32)])
    same([lnp.isin(x, x)], [np.isin(x, x)])


def test_sets_of_two() -> None:
    x, y = sample((3, 5), I32, -4, 4), sample((8,), I32, -2, 9, seed=1)
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        same([getattr(lnp, name)(x, y)], [getattr(np, name)(x, y)])
    same(lnp.intersect1d(x, y, return_indices=True), np.intersect1d(x, y, return_indices=True))
    same([lnp.isin(x, y), lnp.isin(x, y, invert=True)], [np.isin(x, y), np.isin(x, y, invert=True)])
    same([lnp.isin(x, np.zeros((0,), I32))], [np.isin(x, [])])
    kept = np.array([7, 3, -2, 5], I32)
    same([lnp.setdiff1d(kept, y[:3], assume_unique=True)], [np.setdiff1d(kept, y[:3], assume_unique=True)])


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_a_known_size_inside_compile(name: str) -> None:
    x, y, nothing = (np.array(line, F32) for line in ([3, 1, np.nan, 1, 7, np.nan], [7, np.nan, 2, 1], []))
    for first, second in ((x, y), (y, x), (nothing, y), (y, nothing), (nothing, nothing)):
        sized = lx.compile(lambda x, y: getattr(lnp, name)(x, y, size=8, fill_value=-1))
        expected = getattr(np, name)(first, second)
        same([getattr(lnp, name)(first, second)], [expected])
        same([sized(first, second)], [np.append(expected, np.full(8 - expected.size, -1, F32))])
    with pytest.raises(ConcretizationError, match="size="):
        lx.compile(getattr(lnp, name))(x, y)


def test_positions_of_common_elements_inside_compile() -> None:
    x, y = np.array([3, 1, 7, 1], I32), np.array([7, 2, 1], I32)
    found = lx.compile(lambda x, y: lnp.intersect1d(x, y, return_indices=True, size=3))(x, y)
    same(found, [np.array(line, I32) for line in ([1, 7, 1], [1, 2, 4], [2, 0, 3])])


def test_shapes_that_depend_on_data() -> None:
    x = np.round(sample((3, 4)))
    same(lnp.nonzero(x), np.nonzero(x))
    same(lnp.where(x > 0), np.where(x > 0))
    same([lnp.flatnonzero(x), lnp.argwhere(x)], [np.flatnonzero(x), np.argwhere(x)])
    same([lnp.asarray(x)[lnp.asarray(x) > 0]], [x[x > 0]])
    mask = np.array([True, False, True])
    same([lnp.asarray(x)[lnp.asarray(mask)], lnp.compress(mask, x, 0)], [x[mask], np.compress(mask, x, 0)])
    same([lnp.extract(x > 0, x)], [np.extract(x > 0, x)])
    same(lnp.nonzero(np.zeros((0, 2))), np.nonzero(np.zeros((0, 2))))


def test_shapes_that_depend_on_data_inside_compile() -> None:
    x = np.array([0, 3, 0, 4, 4], F32)
    for function in (lnp.nonzero, lnp.unique, lambda x: x[x > 0], lambda x: lnp.compress(x > 0, x)):
        with pytest.raises(ConcretizationError, match="size="):
            lx.compile(function)(x)
    same(lx.compile(lambda x: lnp.nonzero(x, size=4, fill_value=-1))(x), [[1, 3, 4, -1]])
    same(lx.compile(lambda x: lnp.nonzero(x, size=2))(x), [[1, 3]])
    found = lx.compile(lambda x: lnp.unique(x, return_counts=True, size=4, fill_value=9.0))(x)
    same(found, [[0, 3, 4, 9], [2, 1, 2, 0]])
    same([lx.compile(lambda x: lnp.compress(x > 0, x, size=4, fill_value=7.0))(x)], [[3, 4, 4, 7]])
    same([lx.compile(lambda x: x.at[x > 3].set(0.0))(x)], [[0, 3, 0, 0, 0]])


def slope(function: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    weight = np.arange(1, 1 + np.asarray(function(x)).size, dtype=F32).reshape(np.asarray(function(x)).shape)
    return np.asarray(lx.grad(lambda x: lnp.sum(weight * function(x)))(x))


def test_gradients() -> None:
    x = np.array([3, 1, 2, 0, 5], F32)
    np.testing.assert_allclose(slope(lnp.sort, x), [4, 2, 3, 1, 5])
    np.testing.assert_allclose(slope(lnp.cumsum, x), [15, 14, 12, 9, 5])
    np.testing.assert_allclose(slope(lnp.cummax, x), [10, 0, 0, 0, 5])
    np.testing.assert_allclose(slope(lnp.median, x), [0, 0, 1, 0, 0])
    zeros = np.array([2, 0, 3, 0], F32)
    np.testing.assert_allclose(slope(lnp.cumprod, zeros), [1, 4 + 18, 0, 0])
    y = np.array([0.5, -1, 2], F32)
    y64, weight = y.astype(float), np.arange(1, 4)
    total = np.logaddexp.accumulate(y64)
    exact = [sum(weight[i] * np.exp(y64[j] - total[i]) for i in range(j, 3)) for j in range(3)]
    np.testing.assert_allclose(slope(lnp.cumlogsumexp, y), exact, rtol=1e-5)
