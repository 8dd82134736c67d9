"""Elementwise functions of infinities, NaN, signed zeros and the ends of the range, on the device, against NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests import denormals

SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1.5, 2.5, -2.5, 0.3, 7, -7, 88, -88]
    + [1e-30, -1e-30, 1e10, -1e10, 1e30, -1e30, 3.4028235e38, -3.4028235e38, 2 * SMALLEST_NORMAL],
    np.float32,
)
UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "deg2rad", "exp", "exp2",
    "expm1", "fabs", "floor", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "log", "log10", "log1p", "log2",
    "logical_not", "nan_to_num", "negative", "positive", "rad2deg", "reciprocal", "rint", "round", "sign", "signbit",
    "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
BINARY = (
    "add", "atan2", "copysign", "divide", "equal", "float_power", "floor_divide", "fmod", "greater", "greater_equal",
    "heaviside", "hypot", "less", "less_equal", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor",
    "maximum", "minimum", "mod", "multiply", "nextafter", "not_equal", "pow", "remainder", "subtract",
)  # fmt: skip
BINARY_OF_FLOATS = (
    "add", "subtract", "remainder", "floor_divide", "atan2", "pow", "copysign", "maximum", "multiply", "divide",
)  # fmt: skip
# In float64 these round once; the others are exact, or belong to float32 itself.
IN_FLOAT32 = {"nextafter", "signbit", "nan_to_num", "hypot", "add", "subtract", "multiply", "divide", "square"}


def expected(name: str, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = arrays if name in IN_FLOAT32 else [array.astype(np.float64) for array in arrays]
        result = np.asarray(getattr(np, name)(*wide))
        if name == "floor_divide":  # the array API standard gives the quotient for infinities
            result = np.where(np.isinf(wide[0]) | np.isinf(wide[1]), np.divide(*wide), result)
        return result.astype(np.float32) if result.dtype.kind == "f" else result


def assert_same(found: Any, right: np.ndarray, *arrays: np.ndarray, signs: bool = True) -> None:
    """To 4 units in the last place; special values and, with `signs`, zeros exactly; denormal results may be zero.

    Where the device takes denormal terms for zero, a sum may lack as much.
    """
    got = np.asarray(found)
    assert got.dtype == right.dtype
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, right)
        return
    kept = ~((np.abs(right) < SMALLEST_NORMAL) & (right != 0) & (got == 0))
    got, right = got[kept], right[kept]
    np.testing.assert_allclose(got, right, rtol=4 * 2.0**-23, atol=SMALLEST_NORMAL if denormals.are_flushed() else 0)
    if signs:
        wrong = (np.signbit(got) != np.signbit(right)) & ~np.isnan(right)
        assert not wrong.any(), [tuple(array[kept][wrong]) for array in arrays]


@pytest.mark.parametrize("wrap", [lambda f: f, lx.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name: str, wrap: Callable[[Any], Any]) -> None:
    assert_same(wrap(getattr(lnp, name))(SPECIAL), expected(name, SPECIAL), SPECIAL)


@pytest.mark.parametrize("wrap", [lambda f: f, lx.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments(name: str, wrap: Callable[[Any], Any]) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    assert_same(wrap(getattr(lnp, name))(x, y), expected(name, x, y), x, y)


@pytest.mark.parametrize("place", range(len(SPECIAL)))
@pytest.mark.parametrize("name", BINARY_OF_FLOATS)
def test_one_argument_known_when_traced(name: str, place: int) -> None:
    """Constants are folded and simplified: to the same results."""
    function, scalar = getattr(lnp, name), float(SPECIAL[place])
    if name == "pow" and scalar in (0.5, -0.5):
        pytest.skip("a root, whose special values are those of sqrt")
    repeated = np.full_like(SPECIAL, scalar)
    signs = name != "maximum"  # either zero may be the greater
    for given, call in (
        ((SPECIAL, repeated), lambda x: function(x, scalar)),
        ((repeated, SPECIAL), lambda x: function(scalar, x)),
    ):
        assert_same(lx.compile(call)(SPECIAL), expected(name, *given), *given, signs=signs)


def test_parts_of_floats() -> None:
    for name in ("frexp", "modf"):
        for found, right in zip(getattr(lnp, name)(SPECIAL), getattr(np, name)(SPECIAL), strict=True):
            assert_same(found, right, SPECIAL)
    powers = np.array([-400, -150, -126, -1, 0, 1, 127, 128, 290, 400], np.int32)
    x, n = (grid.ravel() for grid in np.meshgrid(SPECIAL, powers))
    with np.errstate(all="ignore"):
        assert_same(lnp.ldexp(x, n), np.ldexp(x, n), x, n)


def test_neighbours_of_zero_and_of_denormals() -> None:
    tiny = np.float32(1e-45)
    x = np.array([0, -0.0, 0, -0.0, 0, tiny, -tiny, tiny, SMALLEST_NORMAL, np.inf], np.float32)
    y = np.array([1, 1, -1, -1, -0.0, 0, 0, 1, 0, 0], np.float32)
    found, right = np.asarray(lnp.nextafter(x, y)), np.nextafter(x, y)
    np.testing.assert_array_equal(found.view(np.int32), right.view(np.int32))
