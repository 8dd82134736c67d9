"""Trigonometric, hyperbolic, bitwise and other elementwise functions against NumPy's: shapes, dtypes, properties."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError
from tests.lavax.numpy.arrays import DTYPES, F32, I32, NUMBERS, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

REAL: dict[str, tuple[float, float]] = {
    "acos": (-1, 1),
    "acosh": (1, 5),
    "asin": (-1, 1),
    "asinh": (-3, 3),
    "atan": (-3, 3),
    "atanh": (0, 0.9),
    "cbrt": (-3, 3),
    "deg2rad": (-180, 180),
    "fabs": (-3, 3),
    "rad2deg": (-3, 3),
    "rint": (-3, 3),
    "sinc": (-3, 3),
}
PAIRS: dict[str, tuple[float, float]] = {
    "atan2": (-3, 3),
    "copysign": (-3, 3),
    "heaviside": (-2, 2),
    "hypot": (-3, 3),
    "logaddexp2": (-3, 3),
    "float_power": (1, 3),
}
ALIASES = {
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "deg2rad": "radians",
    "rad2deg": "degrees",
    "fix": "trunc",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "mod": "remainder",
    "pow": "power",
}


def single(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """`function` in float64, rounded once."""
    return lambda *x: np.asarray(function(*(np.asarray(one, np.float64) for one in x)), F32)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_real_numbers(name: str, dtype: np.dtype) -> None:
    low, high = REAL[name]
    for shape in SHAPES:
        check(getattr(lnp, name), single(getattr(np, name)), sample(shape, dtype, low, high))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_functions_of_pairs(name: str, dtype: np.dtype) -> None:
    low, high = PAIRS[name]
    for a, b in (((3, 4), (3, 4)), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((1, 0), (3, 1))):
        check(getattr(lnp, name), single(getattr(np, name)), sample(a, dtype, low, high), sample(b, F32, low, high, 1))


def test_second_names_are_the_same_functions() -> None:
    for alias, name in ALIASES.items():
        assert getattr(lnp, alias) is getattr(lnp, name)
        assert alias in lnp.__all__ and name in lnp.__all__


@pytest.mark.parametrize("dtype", [I32, U32], ids=str)
def test_shifts(dtype: np.dtype) -> None:
    x = np.array([0, 1, -1, -5, 2**30, 2**31 - 1, -(2**31)], np.int64).astype(dtype)
    for amount in (0, 1, 7, 31, 32, 40):
        y = np.full(x.shape, amount, dtype)
        check(lnp.bitwise_left_shift, np.left_shift, x, y)
        check(lnp.bitwise_right_shift, np.right_shift, x, y)
        check(lambda x, n=amount: (x << n) ^ (x >> n), lambda x, y=y: np.left_shift(x, y) ^ np.right_shift(x, y), x)


@pytest.mark.parametrize("dtype", [I32, U32], ids=str)
def test_counting_bits(dtype: np.dtype) -> None:
    x = np.array([0, 1, 2, 3, 255, 2**31 - 1], dtype)
    check(lnp.bitwise_count, np.bitwise_count, np.concatenate([x, x[:5] * dtype.type(3)]))
    check(lnp.bitwise_count, np.bitwise_count, np.array([-1, -7, -(2**31)], I32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_signs(dtype: np.dtype) -> None:
    x = sample((3, 4), dtype)
    check(lnp.signbit, lambda x: x < 0 if dtype != F32 else np.signbit(x), x)
    check(lnp.nan_to_num, np.nan_to_num, x)


def test_replacing_what_is_not_finite() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1], F32)
    check(lambda x: lnp.nan_to_num(x, True, 7.0, 8, -9.0), lambda x: np.nan_to_num(x, nan=7, posinf=8, neginf=-9), x)


floats = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)
shapes = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
matrices = arrays_of.arrays(F32, shapes, elements=floats)


@settings(max_examples=40)
@given(matrices)
def test_a_float_is_its_mantissa_times_its_power_of_two(x: np.ndarray) -> None:
    mantissa, exponent = lnp.frexp(x)
    np.testing.assert_array_equal(np.asarray(lnp.ldexp(mantissa, exponent)), x)
    sizes = np.abs(np.asarray(mantissa))
    assert ((sizes == 0) | ((sizes >= 0.5) & (sizes < 1))).all()


@settings(max_examples=40)
@given(matrices, st.floats(-1000, 1000, width=32).filter(lambda y: abs(y) > 1e-3))
def test_whole_and_rest_make_the_dividend(x: np.ndarray, y: float) -> None:
    rest = np.asarray(lnp.remainder(x, np.float32(y)), np.float64)
    assert (np.abs(rest) <= abs(y)).all() and ((rest == 0) | (np.sign(rest) == np.sign(y))).all()
    fraction, whole = (np.asarray(part) for part in lnp.modf(x))
    np.testing.assert_array_equal(fraction + whole, x)


@settings(max_examples=40)
@given(matrices, st.floats(-(2.0**100), 2.0**100, width=32))
def test_lengths_are_symmetric_and_at_least_as_long_as_their_parts(x: np.ndarray, y: float) -> None:
    length = np.asarray(lnp.hypot(x, np.float32(y)))
    np.testing.assert_array_equal(length, np.asarray(lnp.hypot(-np.float32(y), x)))
    assert (length >= np.maximum(np.abs(x), abs(np.float32(y))) * np.float32(1 - 2.0**-22)).all()


def test_lengths_of_all_sizes() -> None:
    """On both sides of the sizes from which on parts are scaled."""
    sizes = np.float32(2.0) ** np.arange(-120, 127, dtype="f")
    x, y = (side.ravel() for side in np.meshgrid(np.float32(1.3) * sizes, np.float32(1.7) * sizes))
    near = np.abs(np.log2(x) - np.log2(y)) < 20
    expected = np.hypot(x.astype("d"), y.astype("d"))
    np.testing.assert_allclose(np.asarray(lnp.hypot(x, y)), expected, rtol=4e-7)
    by_x, by_y = lx.grad(lambda x, y: 3 * lnp.sum(lnp.hypot(x, y)), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(np.asarray(by_x)[near], (3 / expected * x)[near], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(by_y)[near], (3 / expected * y)[near], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lnp.bitwise_left_shift(lnp.ones(2), 1), r"bitwise_left_shift is not defined for f32\[2\]"),
        (lambda: lnp.bitwise_count(lnp.ones(2)), r"bitwise_count is not defined for f32\[2\]"),
        (lambda: lnp.ldexp(1.0, 2.0), "ldexp: the exponents must be integers"),
    ],
)
def test_dtypes_that_do_not_fit(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(DtypeError, match=words) as found:
        call()
    assert "test_more_elementwise.py:" in str(found.value)


@pytest.mark.parametrize("name", ["radians", "degrees", "sin", "exp"])
def test_floats_of_integers_do_not_yield_to_narrower_ones(name: str) -> None:
    for dtype in ("bool", "int32"):
        made = getattr(lnp, name)(lnp.asarray([1, 0], dtype))
        assert made.dtype == np.float32 and (made * lnp.ones(2, "bfloat16")).dtype == np.float32
