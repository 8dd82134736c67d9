"""Mantissa, exponent and neighbours of floats, and what stands in for infinities and NaN."""
from __future__ import annotations

import numpy as np

from lavax.ir.types import DType, float32, int32
from lavax.numpy.application import apply, as_floating, together
from lavax.numpy.bitwise import bitwise_and
from lavax.numpy.broadcasting import broadcast_arrays
from lavax.numpy.comparison import equal, greater, isinf, isnan, less, logical_or, where
from lavax.numpy.elementwise import abs, add, clip, multiply, negative, subtract
from lavax.numpy.errors import dtype_error
from lavax.numpy.operands import ArrayLike, as_value, cast
from lavax.numpy.rounding import trunc
from lavax.numpy.signs import copysign
from lavax.tracer import bind, with_weak
from lavax.tracer.value import Value

__all__ = ["frexp", "heaviside", "ldexp", "modf", "nan_to_num", "nextafter", "spacing"]

_SIGN_BIT = -(2**31)
_MANTISSA_BITS = 23
_BIAS = 127


def _bits(value: Value) -> Value:
    return bind("bitcast", value, type=value.type.with_dtype(int32))


def _from_bits(bits: Value) -> Value:
    return bind("bitcast", bits, type=bits.type.with_dtype(float32))


def _require_float32(name: str, dtype: DType) -> None:
    if dtype != float32:
        raise dtype_error(f"{name} is not defined for {dtype}: float32 only; cast by astype")


def nextafter(x: ArrayLike, y: ArrayLike) -> Value:
    """The float32 next to `x` on the way to `y`, elementwise; `y` where they are equal. It has no gradient.

    Next to 0 is a denormal number: devices that flush those give 0 in computations with it. Raises DtypeError for
    floats of other sizes.
    """
    (start, end), weak = together("nextafter", x, y, real=True)
    _require_float32("nextafter", start.type.dtype)
    # As integers in the floats' order: those of negative floats count downwards from that of zero.
    bits = _bits(start)
    order, target = (where(less(one, 0), subtract(_SIGN_BIT, one), one) for one in (bits, _bits(end)))
    step = subtract(cast(greater(target, order), int32), cast(less(target, order), int32))
    moved = add(order, step)
    sign = bitwise_and(bits, _SIGN_BIT)
    behind = where(equal(moved, 0), sign, where(less(moved, 0), subtract(_SIGN_BIT, moved), moved))
    neighbour = where(equal(step, 0), end, _from_bits(behind))
    return with_weak(where(logical_or(isnan(start), isnan(end)), float("nan"), neighbour), weak)


def _power_of_two(exponent: Value) -> Value:
    """2^exponent for -126 <= exponent <= 127."""
    return _from_bits(multiply(add(exponent, _BIAS), 2**_MANTISSA_BITS))


def ldexp(x: ArrayLike, n: ArrayLike) -> Value:
    """x * 2^n, elementwise, in float32; `n` holds integers.

    Raises DtypeError where `n` holds floats.
    """
    value, power = as_floating(x), as_value(n)
    if power.type.dtype.is_float:
        raise dtype_error(f"ldexp: the exponents must be integers, got {power.type}")
    _require_float32("ldexp", value.type.dtype)
    value, power = broadcast_arrays(value, clip(cast(power, int32), -300, 300))
    # In three factors, as 2^300 is not a float but may bring a small x back into the range.
    third = apply("divide", power, 3)
    rest = subtract(power, add(third, third))
    return multiply(multiply(multiply(value, _power_of_two(third)), _power_of_two(third)), _power_of_two(rest))


def frexp(x: ArrayLike) -> tuple[Value, Value]:
    """`x` as m 2^n: m in float32 with 0.5 <= |m| < 1, n in int32. 0, infinities and NaN are their own m, n is 0."""
    value = as_floating(x)
    _require_float32("frexp", value.type.dtype)
    tiny = less(abs(value), float(np.finfo(np.float32).tiny))
    scaled = multiply(value, where(tiny, 2.0**24, 1.0))
    magnitude = bitwise_and(_bits(scaled), 2**31 - 1)
    biased = apply("divide", magnitude, 2**_MANTISSA_BITS)
    special = logical_or(equal(magnitude, 0), equal(biased, 255))
    exponent = where(special, 0, subtract(biased, _BIAS - 1))
    # In two factors, as 2^-128 is not a normal float.
    half = apply("divide", exponent, 2)
    mantissa = multiply(multiply(scaled, _power_of_two(negative(half))), _power_of_two(subtract(half, exponent)))
    return where(special, value, mantissa), subtract(exponent, where(tiny, where(special, 0, 24), 0))


def modf(x: ArrayLike) -> tuple[Value, Value]:
    """The fraction and the whole part of each element, both floats with its sign; the fraction of infinities is 0."""
    value = as_floating(x)
    whole = trunc(value)
    fraction = subtract(value, where(isinf(value), 0.0, whole))
    return copysign(where(isinf(value), 0.0, fraction), value), whole


def nan_to_num(
    x: ArrayLike, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None, neginf: ArrayLike | None = None
) -> Value:
    """`x` with `nan` for NaN, and `posinf` and `neginf` for infinities: None is the largest finite number."""
    value = as_value(x)
    if not value.type.dtype.is_float:
        return value
    largest = float(np.finfo(value.type.dtype.numpy).max)
    result = where(isnan(value), nan, value)
    result = where(equal(value, float("inf")), largest if posinf is None else posinf, result)
    return where(equal(value, float("-inf")), -largest if neginf is None else neginf, result)


def heaviside(x: ArrayLike, y: ArrayLike) -> Value:
    """0 where `x` is below 0, 1 where it is above, `y` where it is 0, as a float, elementwise; NaN stays NaN."""
    (value, at_zero), weak = together("heaviside", x, y, real=True)
    step = where(less(value, 0), 0.0, where(greater(value, 0), 1.0, where(isnan(value), value, at_zero)))
    return with_weak(step, weak)


def spacing(x: ArrayLike) -> Value:
    """The distance from each float32 to the next one that is further from 0, with its sign; NaN of infinities.

    Raises DtypeError for floats of other sizes.
    """
    value = as_floating(x)
    _require_float32("spacing", value.type.dtype)
    magnitude = bitwise_and(_bits(value), 2**31 - 1)
    biased = apply("divide", magnitude, 2**_MANTISSA_BITS)
    normal = multiply(subtract(biased, _MANTISSA_BITS), 2**_MANTISSA_BITS)
    denormal = apply("shift_left", 1, clip(subtract(biased, 1), 0, _MANTISSA_BITS))
    step = _from_bits(where(greater(biased, _MANTISSA_BITS), normal, denormal))
    return where(equal(biased, 255), float("nan"), copysign(step, value))
