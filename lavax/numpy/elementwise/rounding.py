"""Rounding, and division with a whole quotient."""
from __future__ import annotations

import numpy as np

from lavax.ir.types import bool_, int32
from lavax.numpy._core.application import apply, as_python_float, together
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy._core.promotion import averaging
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, greater, isfinite, isinf, less, logical_and, logical_or, where
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.signs import copysign
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["ceil", "divmod", "floor", "floor_divide", "fmod", "remainder", "rint", "round", "trunc"]


def floor(x: ArrayLike) -> Value:
    """The greatest whole number that is not above `x`, elementwise; integers stay as they are."""
    value = as_value(x)
    return apply("floor", value) if value.type.dtype.is_inexact else own(value)


def ceil(x: ArrayLike) -> Value:
    """The smallest whole number that is not below `x`, elementwise; integers stay as they are."""
    value = as_value(x)
    return apply("ceil", value) if value.type.dtype.is_inexact else own(value)


def trunc(x: ArrayLike) -> Value:
    """`x` without its fraction, elementwise; integers stay as they are."""
    value = as_value(x)
    return apply("truncate", value, name="trunc") if value.type.dtype.is_inexact else own(value)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Value:
    """The nearest whole number, halves to the even one, elementwise; `decimals` places are kept.

    Integers are unchanged, except for negative `decimals`, which round to tens, hundreds, … Halves are decided by a *
    10**decimals in the dtype of `a`, or in float32 if that has 16 bits. A number without further places is unchanged.
    """
    refuse_out("round", out)
    value, places = as_value(a), whole_number("decimals", decimals)
    if value.type.dtype.is_complex:
        return bind("complex", *(round(bind(part, value), places) for part in ("real", "imag")))
    if not value.type.dtype.is_float:
        return _to_multiples(value, 10**-places) if places < 0 and value.type.dtype.is_integer else own(value)
    return _to_places(value, places) if places else apply("round", value)


def _to_places(value: Value, places: int) -> Value:
    """Floats to `places` decimals, other than 0. Its derivative is 0, as that of rounding to whole numbers."""
    wide = bind("stop_gradient", cast(value, averaging(value.type.dtype)))
    limits = np.finfo(wide.type.dtype.numpy)
    if 10 ** max(places, -places) > int(limits.max):  # no number has more places, or all are nearest to 0
        found = wide if places > 0 else where(isfinite(wide), multiply(wide, 0.0), wide)
    elif places < 0:
        unit = 10.0**-places
        found = multiply(apply("round", divide(wide, unit)), unit)
    else:
        scaled = multiply(wide, 10.0**places)
        has_more = less(abs(scaled), 2.0**limits.nmant)  # false also if the product overflows
        found = where(has_more, divide(apply("round", scaled), 10.0**places), wide)
    return with_weak(cast(found, value.type.dtype), value.weak)


def _to_multiples(value: Value, unit: int) -> Value:
    """Integers to the nearest multiple of `unit`, which is even; halves to the even multiple."""
    if unit > int(np.iinfo(value.type.dtype.numpy).max):  # 0 is the only multiple that the dtype holds
        return multiply(value, 0)
    below = floor_divide(value, unit)
    rest = subtract(value, multiply(below, unit))
    tie_up = logical_and(equal(rest, unit // 2), equal(remainder(below, 2), 1))
    up = cast(logical_or(greater(rest, unit // 2), tie_up), value.type.dtype)
    return with_weak(multiply(add(below, up), unit), value.weak)


def rint(x: ArrayLike) -> Value:
    """The nearest whole number as a float, halves to the even one, elementwise."""
    value = as_python_float(x)
    return round(value) if value.type.dtype.is_complex else apply("round", value, name="rint")


def _numbers(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Value, Value]:
    """`x` and `y` in their common shape and dtype, truth values as integers."""
    (first, second), weak = together(name, x, y)
    if first.type.dtype == bool_:
        return cast(first, int32), cast(second, int32)
    return with_weak(first, weak), with_weak(second, weak)


def _opposite(remainder: Value, divisor: Value) -> Value:
    """Whether the truncated remainder is not zero and has the other sign than the divisor."""
    return logical_or(
        logical_and(less(divisor, 0), greater(remainder, 0)), logical_and(greater(divisor, 0), less(remainder, 0))
    )


def fmod(x: ArrayLike, y: ArrayLike) -> Value:
    """The remainder of the division rounded toward zero, with the sign of `x`, elementwise.

    An integer divided by zero leaves itself.
    """
    return apply("remainder", *_numbers("fmod", x, y))


@one_program()
def remainder(x: ArrayLike, y: ArrayLike) -> Value:
    """x - floor_divide(x, y) * y, elementwise: Python's `%`, with the sign of `y`.

    An integer divided by zero leaves itself.
    """
    dividend, divisor = _numbers("remainder", x, y)
    if dividend.type.dtype.is_float:
        return apply("modulo", dividend, divisor)
    truncated = apply("remainder", dividend, divisor)
    if truncated.type.dtype.kind == "uint":
        return truncated
    return where(_opposite(truncated, divisor), add(truncated, divisor), truncated)


@one_program()
def floor_divide(x: ArrayLike, y: ArrayLike) -> Value:
    """The greatest whole number that is not above x / y, elementwise, in the common dtype: Python's `//`.

    An integer divided by zero gives -1 (all bits set); a float gives x / y. So do infinities, and floats divided
    by them, as the array API standard has it: -0.0 for 3.0 // -inf, where NumPy gives -1.0.
    """
    dividend, divisor = _numbers("floor_divide", x, y)
    if dividend.type.dtype.is_float:
        return _floor_divide_floats(dividend, divisor)
    quotient = apply("divide", dividend, divisor)
    if quotient.type.dtype.kind == "uint":
        return quotient
    truncated = apply("remainder", dividend, divisor)
    return where(_opposite(truncated, divisor), subtract(quotient, 1), quotient)


def _floor_divide_floats(x: Value, y: Value) -> Value:
    """By the exact remainder, because the floor of a rounded quotient may be one too high. Its derivative is 0."""
    dividend, divisor = (with_weak(bind("stop_gradient", value), value.weak) for value in (x, y))
    # The remainder of two small numbers may be denormal, which some devices treat as zero.
    small = less(maximum(abs(dividend), abs(divisor)), 2.0**-60)
    dividend, divisor = (where(small, multiply(value, 2.0**60), value) for value in (dividend, divisor))
    truncated = apply("remainder", dividend, divisor)
    ratio = divide(dividend, divisor)
    quotient = divide(subtract(dividend, truncated), divisor)
    nearly_whole = where(_opposite(truncated, divisor), subtract(quotient, 1.0), quotient)
    below = floor(nearly_whole)
    whole = where(greater(subtract(nearly_whole, below), 0.5), add(below, 1.0), below)
    # A quotient of 0 has the sign of x / y.
    signed = where(equal(nearly_whole, 0), copysign(0.0, ratio), whole)
    return where(logical_or(equal(divisor, 0), logical_or(isinf(dividend), isinf(divisor))), ratio, signed)


@one_program()
def divmod(x: ArrayLike, y: ArrayLike) -> tuple[Value, Value]:
    """floor_divide(x, y) and remainder(x, y)."""
    return floor_divide(x, y), remainder(x, y)
