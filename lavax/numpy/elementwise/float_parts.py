"""Mantissa, exponent and neighbours of floats, and replacements of infinities and NaN."""
from __future__ import annotations

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, bfloat16, float16, float32, float64, int16, int32, int64
from lavax.numpy._core.application import apply, real_numbers, together
from lavax.numpy._core.broadcasting import broadcast_arrays
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy.elementwise.arithmetic import abs, add, multiply, negative, subtract
from lavax.numpy.elementwise.bitwise import bitwise_and
from lavax.numpy.elementwise.comparison import equal, greater, greater_equal, isinf, isnan, less, logical_or, where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.elementwise.rounding import trunc
from lavax.numpy.elementwise.signs import copysign
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["frexp", "heaviside", "ldexp", "modf", "nan_to_num", "nextafter", "spacing"]


@dataclass(frozen=True)
class _FloatFormat:
    """The bits of a float: the integer dtype of its width, the bits of the mantissa, the exponent's bias."""

    integer: DType
    mantissa: int
    bias: int


_LAYOUTS = {
    float16: _FloatFormat(int16, 10, 15),
    float32: _FloatFormat(int32, 23, 127),
    float64: _FloatFormat(int64, 52, 1023),
}


def _bits(value: Value) -> Value:
    return bind("bitcast", value, type=value.type.with_dtype(_LAYOUTS[value.type.dtype].integer))


def _from_bits(bits: Value, dtype: DType) -> Value:
    return bind("bitcast", bits, type=bits.type.with_dtype(dtype))


@one_program()
def nextafter(x: ArrayLike, y: ArrayLike) -> Value:
    """The float next to `x` on the way to `y`, elementwise; `y` where they are equal. It has no gradient.

    Next to 0 is a denormal number: devices that flush those give 0 in computations with it.
    """
    (start, end), weak = together("nextafter", x, y, real=True)
    real_numbers("nextafter", start)
    given = start.type.dtype
    # The bits of bfloat16 are the upper ones of float32.
    dtype, unit = (float32, 2**16) if given == bfloat16 else (given, 1)
    start, end = cast(start, dtype), cast(end, dtype)
    integer = _LAYOUTS[dtype].integer
    lowest = integer.lowest
    # Integers in the order of the floats: those of negative floats count downwards from zero's.
    bits = _bits(start)
    order, target = (where(less(one, 0), subtract(lowest, one), one) for one in (bits, _bits(end)))
    step = subtract(cast(greater(target, order), integer), cast(less(target, order), integer))
    moved = add(order, multiply(step, unit))
    sign = bitwise_and(bits, lowest)
    behind = where(equal(moved, 0), sign, where(less(moved, 0), subtract(lowest, moved), moved))
    neighbour = where(equal(step, 0), end, _from_bits(behind, dtype))
    neighbour = where(logical_or(isnan(start), isnan(end)), float("nan"), neighbour)
    return with_weak(cast(neighbour, given), weak)


def _power_of_two(exponent: Value, dtype: DType) -> Value:
    """2^exponent, a normal number of the dtype."""
    layout = _LAYOUTS[dtype]
    return _from_bits(multiply(cast(add(exponent, layout.bias), layout.integer), 2**layout.mantissa), dtype)


def _wide(value: Value) -> Value:
    """16-bit floats as float32, which holds all of them and their products with powers of two."""
    return value if value.type.dtype in (float32, float64) else cast(value, float32)


def ldexp(x: ArrayLike, n: ArrayLike) -> Value:
    """x * 2^n, elementwise; `n` holds integers. Raises DtypeError if it holds floats."""
    given, power = real_numbers("ldexp", x), as_value(n)
    if power.type.dtype.is_inexact:
        raise dtype_error(f"ldexp: the exponents must be integers, got {power.type}")
    value = _wide(given)
    dtype = value.type.dtype
    # In three factors, as the greatest power is not a float but may bring a small x back into the range.
    most = 2 * _LAYOUTS[dtype].bias + 46
    value, power = broadcast_arrays(value, cast(clip(power, *_within(power.type.dtype, most)), int32))
    third = apply("divide", power, 3)
    rest = subtract(power, add(third, third))
    outer, inner = _power_of_two(third, dtype), _power_of_two(rest, dtype)
    return cast(multiply(multiply(multiply(value, outer), outer), inner), given.type.dtype)


def _within(dtype: DType, most: int) -> tuple[int, int]:
    """The interval [-most, most], or the part of it that the dtype holds."""
    if dtype.kind == "bool":
        return 0, 1
    return max(-most, dtype.lowest), min(most, dtype.highest)


@one_program()
def frexp(x: ArrayLike) -> tuple[Value, Value]:
    """`x` as m 2^n: m with 0.5 <= |m| < 1, n in int32. 0, infinities and NaN are their own m, n is 0."""
    given = real_numbers("frexp", x)
    value = _wide(given)
    dtype = value.type.dtype
    layout = _LAYOUTS[dtype]
    tiny = less(abs(value), float(np.finfo(dtype.numpy).tiny))
    lifted = layout.mantissa + 1
    scaled = multiply(value, where(tiny, 2.0**lifted, 1.0))
    magnitude = bitwise_and(_bits(scaled), layout.integer.highest)
    biased = cast(apply("divide", magnitude, 2**layout.mantissa), int32)
    special = logical_or(equal(magnitude, 0), equal(biased, 2 * layout.bias + 1))
    exponent = where(special, 0, subtract(biased, layout.bias - 1))
    # In two factors, as the least power is not a normal float.
    half = apply("divide", exponent, 2)
    first, second = _power_of_two(negative(half), dtype), _power_of_two(subtract(half, exponent), dtype)
    mantissa = where(special, value, multiply(multiply(scaled, first), second))
    return cast(mantissa, given.type.dtype), subtract(exponent, where(tiny, where(special, 0, lifted), 0))


@one_program()
def modf(x: ArrayLike) -> tuple[Value, Value]:
    """The fraction and the whole part of each element, both floats with its sign; the fraction of infinities is 0."""
    value = real_numbers("modf", x)
    whole = trunc(value)
    fraction = subtract(value, where(isinf(value), 0.0, whole))
    return copysign(where(isinf(value), 0.0, fraction), value), whole


@one_program("copy", integers=True)
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Value:
    """`x` with `nan` for NaN, and `posinf` and `neginf` for infinities: None is the largest finite number.

    Of complex numbers each part is replaced on its own. `copy` changes nothing: the result is a new array. Raises
    DtypeError if what replaces those is complex.
    """
    value = as_value(x)
    if value.type.dtype.is_complex:
        for name, given in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
            real_numbers(f"nan_to_num: {name}", 0.0 if given is None else given)
        parts = [nan_to_num(bind(part, value), copy, nan, posinf, neginf) for part in ("real", "imag")]
        return bind("complex", *parts)
    if not value.type.dtype.is_float:
        return own(value)
    largest = float(np.finfo(value.type.dtype.numpy).max)
    result = where(isnan(value), nan, value)
    result = where(equal(value, float("inf")), largest if posinf is None else posinf, result)
    result = where(equal(value, float("-inf")), -largest if neginf is None else neginf, result)
    return with_weak(result, False)


@one_program()
def heaviside(x: ArrayLike, y: ArrayLike) -> Value:
    """0 where `x` is below 0, 1 where it is above, `y` where it is 0, as a float, elementwise; NaN stays NaN."""
    (value, at_zero), weak = together("heaviside", x, y, real=True)
    real_numbers("heaviside", value)
    step = where(less(value, 0), 0.0, where(greater(value, 0), 1.0, where(isnan(value), value, at_zero)))
    return with_weak(step, weak)


@one_program()
def spacing(x: ArrayLike) -> Value:
    """The distance from each float to the next one further from 0, with its sign.

    It is infinity for the largest float; NaN of infinities.
    """
    value = real_numbers("spacing", x)
    given = value.type.dtype
    # The bits of bfloat16 are the upper ones of float32.
    dtype, units = (float32, 2.0**16) if given == bfloat16 else (given, 1.0)
    value, layout = cast(value, dtype), _LAYOUTS[dtype]
    magnitude = bitwise_and(_bits(value), layout.integer.highest)
    biased = apply("divide", magnitude, 2**layout.mantissa)
    normal = multiply(subtract(biased, layout.mantissa), 2**layout.mantissa)
    denormal = apply("shift_left", 1, clip(subtract(biased, 1), 0, layout.mantissa))
    step = multiply(_from_bits(where(greater(biased, layout.mantissa), normal, denormal), dtype), units)
    beyond = (2 * layout.bias + 1) * 2**layout.mantissa
    step = where(greater_equal(magnitude, beyond - int(units)), float("inf"), step)
    return cast(where(greater_equal(magnitude, beyond), float("nan"), copysign(step, value)), given)
