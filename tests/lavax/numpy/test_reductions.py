"""Functions that fold axes away, against NumPy's."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, NUMBERS, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")


def axes_of(shape: tuple[int, ...]) -> Iterator[Any]:
    """None, each axis from the front and from the end, and all pairs."""
    yield None
    yield ()
    yield from range(-len(shape), len(shape))
    yield from combinations(range(len(shape)), 2)
    if len(shape) > 1:
        yield (-1, 0)


def empty_over(shape: tuple[int, ...], axis: Any) -> bool:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return any(shape[d] == 0 for d in axes)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_over_any_axes(name: str, dtype: np.dtype, keepdims: bool) -> None:
    ours, theirs = getattr(lnp, name), getattr(np, name)
    for shape in SHAPES:
        x = sample(shape, dtype)
        for axis in axes_of(shape):
            if name in ("max", "min") and empty_over(shape, axis):
                with pytest.raises(ShapeError, match=rf"{name} of no elements"):
                    ours(x, axis, keepdims=keepdims)
                continue
            expected = theirs(x, axis=axis, keepdims=keepdims)
            check(lambda x: ours(x, axis, keepdims=keepdims), lambda _: expected, x)  # noqa: B023


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom", "ignore:invalid value")
def test_moments(name: str, dtype: np.dtype) -> None:
    ours, theirs = getattr(lnp, name), getattr(np, name)
    for shape in SHAPES:
        x = sample(shape, dtype)
        exact = x.astype(np.float64)
        for axis in axes_of(shape):
            expected = np.asarray(theirs(exact, axis=axis), F32)
            check(lambda x: ours(x, axis), lambda _: expected, x)  # noqa: B023
            kept = np.asarray(theirs(exact, axis=axis, keepdims=True), F32)
            check(lambda x: ours(x, axis, keepdims=True), lambda _: kept, x)  # noqa: B023


def test_variance_of_data_far_from_zero() -> None:
    """The mean of squares less the square of the mean would have no correct digit here."""
    x = (10_000 + sample((64, 32))).astype(F32)
    expected = x.astype(np.float64).var(0)
    np.testing.assert_allclose(np.asarray(lnp.var(x, 0)), expected, rtol=1e-5)


@pytest.mark.parametrize("option", ["ddof", "correction"])
def test_the_divisor_of_the_variance(option: str) -> None:
    x = sample((3, 4))
    check(lambda x: lnp.var(x, 0, **{option: 1}), lambda x: np.var(x, 0, ddof=1), x)
    check(lambda x: lnp.std(x, **{option: 2.5}), lambda x: np.std(x, ddof=2.5), x)
    assert np.isnan(np.asarray(lnp.var(np.ones(1, F32), ddof=1)))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(name: str, dtype: np.dtype, keepdims: bool) -> None:
    ours, theirs = getattr(lnp, name), getattr(np, name)
    for shape in SHAPES:
        x = sample(shape, dtype)
        for axis in [None, *range(-len(shape), len(shape))]:
            if empty_over(shape, axis):
                with pytest.raises(ShapeError, match=rf"{name} of no elements"):
                    ours(x, axis)
                continue
            expected = np.asarray(theirs(x, axis=axis, keepdims=keepdims), I32)
            check(lambda x: ours(x, axis, keepdims=keepdims), lambda _: expected, x)  # noqa: B023


def test_nan_is_the_extremum() -> None:
    x = np.array([[1, np.nan, 2], [3, 4, 5]], F32)
    for name in ("max", "min", "argmax", "argmin"):
        check(lambda x: getattr(lnp, name)(x, 1), lambda x: getattr(np, name)(x, 1), x)  # noqa: B023


@pytest.mark.parametrize(
    ("dtype", "wanted"), [(BOOL, F32), (I32, F32), (F32, I32), (I32, BOOL), (U32, I32)]
)
def test_sums_in_a_given_dtype(dtype: np.dtype, wanted: Any) -> None:
    x = sample((3, 4), dtype, 0, 3)
    for ours, theirs in ((lnp.sum, np.sum), (lnp.prod, np.prod)):
        check(lambda x: ours(x, 0, wanted), lambda x: theirs(x, 0, wanted), x)  # noqa: B023
    if wanted != BOOL:
        check(lambda x: lnp.mean(x, dtype=F32), lambda x: np.mean(x, dtype=F32), x)


def test_array_equal() -> None:
    x = sample((2, 3))
    check(lnp.array_equal, lambda x, y: np.asarray(np.array_equal(x, y)), x, x)
    check(lnp.array_equal, lambda x, y: np.asarray(np.array_equal(x, y)), x, x + 1)
    assert not bool(lnp.array_equal(x, x[:1]))


@pytest.mark.parametrize("call", [lnp.sum, lnp.max, lnp.mean, lnp.var, lnp.any, lnp.argmax])
@pytest.mark.parametrize("axis", [2, -3])
def test_a_wrong_axis(call: Callable[..., Any], axis: int) -> None:
    with pytest.raises(ShapeError, match=rf"{call.__name__}: axis {axis} is not an axis of f32\[2,3\]") as found:
        call(sample((2, 3)), axis)
    assert "from -2 to 1" in str(found.value) and "test_reductions.py:" in str(found.value)


def test_an_axis_named_twice() -> None:
    with pytest.raises(ShapeError, match=r"sum: axes \(0, -2\) name an axis of f32\[2,3\] twice"):
        lnp.sum(sample((2, 3)), (0, -2))


def test_a_dtype_that_does_not_exist() -> None:
    with pytest.raises(DtypeError, match=r"datetime64.*use one of float32"):
        lnp.sum(sample((2,)), dtype="datetime64")


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numpys_own_functions_call_ours(dtype: np.dtype) -> None:
    x = sample((3, 4), dtype)
    for name in ("sum", "mean", "max", "var", "any", "argmax"):
        found = getattr(np, name)(lnp.array(x), axis=1)
        assert isinstance(found, lnp.ndarray)
        np.testing.assert_allclose(np.asarray(found), getattr(np, name)(x, axis=1), rtol=1e-6)
