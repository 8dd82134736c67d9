"""Elementwise functions against NumPy's."""
from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError
from tests.lavax.numpy.arrays import BOOL, DTYPES, F32, I32, NUMBERS, SHAPES, U32, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

# name: (NumPy's function, from, to): functions of real numbers, for every dtype
REAL: dict[str, tuple[Callable[..., Any], float, float]] = {
    "exp": (np.exp, -3, 3),
    "exp2": (np.exp2, -3, 3),
    "expm1": (np.expm1, -3, 3),
    "log": (np.log, 1, 5),
    "log2": (np.log2, 1, 5),
    "log10": (np.log10, 1, 5),
    "log1p": (np.log1p, 0, 5),
    "sqrt": (np.sqrt, 0, 5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1, 5),
    "sin": (np.sin, -3, 3),
    "cos": (np.cos, -3, 3),
    "tan": (np.tan, -1, 1),
    "tanh": (np.tanh, -3, 3),
    "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3),
    "radians": (np.radians, -3, 3),
    "degrees": (np.degrees, -3, 3),
    "reciprocal": (lambda x: 1 / x, 1, 5),
}
NUMERIC: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "negative": np.negative,
    "positive": np.positive,
    "sign": np.sign,
    "square": np.square,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
}
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "logaddexp": np.logaddexp,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "divmod": np.divmod,
}
PAIRS = (
    ((3, 4), (3, 4)), ((), (2, 3)), ((4,), (3, 1)), ((2, 1, 3), (4, 1)), ((1, 0), (3, 1)), ((2, 3, 1, 2), (3, 4, 1)),
)  # fmt: skip


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_real_numbers(name: str, dtype: np.dtype) -> None:
    theirs, low, high = REAL[name]
    for shape in SHAPES:
        x = sample(shape, dtype, low, high)
        real = x.astype(np.float32) if dtype == BOOL else x
        with np.errstate(all="ignore"):
            expected = np.asarray(theirs(real), np.float32)
        check(getattr(lnp, name), lambda _, expected=expected: expected, x)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_functions_of_numbers_keep_the_dtype(name: str, dtype: np.dtype) -> None:
    for shape in SHAPES:
        x = sample(shape, dtype)
        check(getattr(lnp, name), lambda x: NUMERIC[name](x).astype(x.dtype), x)


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize(("left", "right"), [*product(NUMBERS, NUMBERS)], ids=str)
def test_arithmetic_promotes_and_broadcasts(name: str, left: np.dtype, right: np.dtype) -> None:
    for a, b in PAIRS:
        check(getattr(lnp, name), ARITHMETIC[name], sample(a, left, 1, 3), sample(b, right, 1, 3, seed=1))


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "divmod"])
@pytest.mark.parametrize("dtype", [F32, I32], ids=str)
def test_division_has_the_signs_that_numpy_has(name: str, dtype: np.dtype) -> None:
    numbers = np.array([-7, -6, -2, -1, 0, 1, 2, 6, 7], dtype)
    x, y = (a.ravel() for a in np.meshgrid(numbers, numbers[numbers != 0]))
    check(getattr(lnp, name), ARITHMETIC[name], x, y)


def test_floats_divided_at_the_ends_of_the_range() -> None:
    x, y = np.array([-1, 1, 5, -5, 0, np.inf], F32), np.array([np.inf, -np.inf, 0, 0, 0, 2], F32)
    # As the array API standard has it; NumPy gives -1 and NaN where an operand is infinite.
    check(lnp.floor_divide, lambda *_: np.array([-0.0, -0.0, np.inf, -np.inf, np.nan, np.inf], F32), x, y)
    check(lnp.remainder, np.remainder, x, y)
    check(lnp.floor_divide, np.floor_divide, np.array([1, 6, 0.3], F32), np.array([0.1, 0.1, 0.1], F32))


def test_integers_divided_by_zero() -> None:
    x, zero = np.array([-5, 0, 5], I32), np.zeros(3, I32)
    np.testing.assert_array_equal(np.asarray(lnp.floor_divide(x, zero)), [-1, -1, -1])
    np.testing.assert_array_equal(np.asarray(lnp.remainder(x, zero)), x)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(lnp.add, np.add), (lnp.multiply, np.multiply), (lnp.maximum, np.maximum), (lnp.minimum, np.minimum)],
)
def test_arithmetic_of_truth_values(ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    check(ours, theirs, np.array([0, 0, 1, 1], BOOL), np.array([0, 1, 0, 1], BOOL))
    check(ours, theirs, sample((2, 3), BOOL), sample((3,), F32))


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", [I32, U32, BOOL], ids=str)
def test_bitwise(name: str, dtype: np.dtype) -> None:
    for a, b in PAIRS:
        check(getattr(lnp, name), getattr(np, name), sample(a, dtype), sample(b, dtype, seed=1))
    check(lnp.bitwise_invert, np.bitwise_not, sample((2, 3), dtype))


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_comparisons(name: str, dtype: np.dtype) -> None:
    for a, b in PAIRS:
        check(getattr(lnp, name), getattr(np, name), sample(a, dtype, 0, 2), sample(b, dtype, 0, 2, seed=1))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1], F32)
    check(getattr(lnp, name), getattr(np, name), special, special)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logic(name: str, dtype: np.dtype) -> None:
    x, y = np.array([0, 0, 1, 2], dtype), np.array([0, 1, 0, 2], F32)
    check(getattr(lnp, name), getattr(np, name), x, y)
    check(lnp.logical_not, np.logical_not, x)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_kinds_of_numbers(name: str, dtype: np.dtype) -> None:
    for shape in SHAPES:
        check(getattr(lnp, name), getattr(np, name), sample(shape, dtype))
    check(getattr(lnp, name), getattr(np, name), np.array([np.nan, np.inf, -np.inf, 0, 3e38], F32))


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding_of_halves_and_large_numbers(name: str) -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609, 1e30, -np.inf, np.nan], F32)
    check(getattr(lnp, name), getattr(np, name), x, rtol=0, atol=0)


def test_rounding_to_decimals() -> None:
    x = sample((3, 4))
    check(lambda x: lnp.round(x, 2), lambda x: np.round(x, 2), x)
    check(lambda x: lnp.round(x * 100, -1), lambda x: np.round(x * 100, -1), x)


@pytest.mark.parametrize("decimals", [1, 3, 38, 39, 400, -38, -39, -400])
def test_rounding_to_decimals_never_leaves_the_range(decimals: int) -> None:
    """NumPy has infinities and NaN where x * 10**decimals is too large."""
    x = np.array([0, 1.5, 3e38, -3e38, 99, np.inf, -np.inf, np.nan], F32)
    expected = [float(round(Fraction(float(n)), decimals)) if np.isfinite(n) else n for n in x]
    np.testing.assert_allclose(lnp.round(x, decimals), expected, rtol=2e-7)


def test_rounding_to_decimals_in_16_bits_takes_32() -> None:
    x = np.array([99, -6.55e4, 0.0625], np.float16)
    np.testing.assert_array_equal(lnp.round(x, 3), np.round(x.astype(F32), 3).astype(np.float16))
    assert lnp.round(x, 3).dtype == np.float16


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 8, 9, -1, -2, -8, 0.5, -0.5, 2.0, 1.5])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_powers_by_a_number(exponent: float, dtype: np.dtype) -> None:
    x = sample((2, 3), dtype, 1, 3)
    if exponent < 0 and isinstance(exponent, int) and dtype != F32:
        with pytest.raises(DtypeError, match="cannot be raised to"):
            lnp.power(x, exponent)
    else:
        check(lambda x: lnp.power(x, exponent), lambda x: np.power(x, exponent), x)


def test_hyperbolic_functions_near_zero_and_far_out() -> None:
    x = np.array([1e-6, -1e-3, 1e-20, 0.99, 1.01, -50, 88, 89.2, -89.2], F32)
    check(lnp.sinh, lambda x: np.sinh(x.astype(float)).astype(F32), x, atol=0)
    check(lnp.cosh, lambda x: np.cosh(x.astype(float)).astype(F32), x, atol=0)


def test_logaddexp_of_infinities() -> None:
    x, y = np.array([np.inf, -np.inf, np.inf, -np.inf, 0], F32), np.array([np.inf, -np.inf, -np.inf, 0, np.nan], F32)
    check(lnp.logaddexp, np.logaddexp, x, y)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_clip(dtype: np.dtype) -> None:
    x, low = sample((2, 3), dtype, -5, 5), sample((3,), dtype, -1, 1)
    check(lambda x, low: lnp.clip(x, low, 2), lambda x, low: np.clip(x, low, 2), x, low)
    check(lambda x: lnp.clip(x, max=1), lambda x: np.clip(x, None, 1), x)
    check(lambda x: lnp.clip(x, 1), lambda x: np.clip(x, 1, None), x)


@pytest.mark.parametrize(("left", "right"), [*product(DTYPES, DTYPES)], ids=str)
def test_where(left: np.dtype, right: np.dtype) -> None:
    for a, b in PAIRS:
        arrays = sample(a, BOOL), sample(b, left), sample(a, right, seed=1)
        check(lnp.where, np.where, *arrays)
    check(lambda x: lnp.where(x, x, 0), lambda x: np.where(x, x, 0).astype(x.dtype), sample((3, 2), I32, 0, 2))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("scalar", [2, 2.5, True])
def test_python_scalars_yield(dtype: np.dtype, scalar: float) -> None:
    x = sample((2, 3), dtype)
    result = F32 if isinstance(scalar, float) else dtype
    check(lambda x: lnp.add(x, scalar), lambda x: (x + scalar).astype(result), x)
    check(lambda x: lnp.multiply(scalar, x), lambda x: (scalar * x).astype(result), x)


def test_weak_results_yield_too() -> None:
    weak = lnp.add(2, 3)
    assert weak.weak and weak.dtype == I32
    assert lnp.add(weak, np.ones(2, U32)).dtype == U32
    assert lnp.sqrt(2).weak
    assert not lnp.add(np.int32(2), 3).weak
    assert lnp.add(np.ones(2, BOOL), 3).dtype == I32
    assert lnp.add(np.ones(2, BOOL), 3).weak
    assert lnp.floor_divide(7.5, 2.0).weak and lnp.divmod(lnp.asarray(7.5), 2.0)[0].weak
    assert not lnp.floor_divide(np.float32(7.5), 2.0).weak


def test_results_that_do_not_yield() -> None:
    """JAX 0.10.2: reductions of weak numbers, and what is made of a dtype's own numbers, have their dtype."""
    weak = lnp.asarray(1.5)
    for reduced in (lnp.sum, lnp.prod, lnp.max, lnp.min, lnp.mean, lnp.var, lnp.std, lnp.ptp, lnp.nansum):
        assert not reduced(weak).weak, reduced
        assert lnp.multiply(reduced(weak), np.ones(2, np.float16)).dtype == F32
    assert not lnp.max(lnp.asarray(1j)).weak
    assert not lnp.nan_to_num(weak).weak
    assert not lnp.reciprocal(np.uint8(2)).weak and lnp.reciprocal(2).weak


@pytest.mark.parametrize(("scalar", "dtype"), [(2**31, I32), (-1, U32), (-(2**31) - 1, I32)])
def test_a_python_integer_out_of_range(scalar: int, dtype: np.dtype) -> None:
    with pytest.raises(DtypeError, match=rf"{scalar} is outside {dtype}"):
        lnp.add(np.zeros(2, dtype), scalar)


def test_nested_lists_and_values_inside_them() -> None:
    row = lnp.array([1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(lnp.add([row, [3, 4]], 1)), [[2, 3], [4, 5]])
    arrays = sample((2,)), sample(())
    check(lambda x, y: lnp.add([x, [y, 2]], x), lambda x, y: np.add([x, np.array([y, 2], F32)], x), *arrays)


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ShapeError) as found:
        lnp.add(lnp.ones((2, 3)), lnp.ones((4, 2, 5)))
    text = str(found.value)
    assert "add: shapes (2, 3) and (4, 2, 5) do not broadcast: axis -1 has 3 and 5" in text
    assert "f32[2,3]" in text and "test_elementwise.py:" in text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lnp.bitwise_and(lnp.ones(2), 1), "bitwise_and is not defined for f32"),
        (lambda: lnp.subtract(np.ones(2, bool), np.ones(2, bool)), "subtract is not defined for bool"),
        (lambda: lnp.negative(np.ones(2, bool)), "negate is not defined for bool"),
    ],
)
def test_dtypes_that_do_not_fit(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(DtypeError, match=words) as found:
        call()
    assert "test_elementwise.py:" in str(found.value)
