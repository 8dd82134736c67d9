"""Arithmetic and absolute values."""
from __future__ import annotations

import math

from lavax.ir.types import bool_, int32
from lavax.numpy._core.application import apply, as_floating, binary_function, real_numbers
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.tracer import bind, constant, with_weak
from lavax.tracer.values.value import Value

__all__ = [
    "abs", "divide", "fabs", "positive", "reciprocal", "sign", "square",
]  # fmt: skip

add = binary_function("add", "x + y")
subtract = binary_function("subtract", "x - y")
multiply = binary_function("multiply", "x * y")


def divide(x: ArrayLike, y: ArrayLike) -> Value:
    """x / y, elementwise; the quotient of integers is a float."""
    return apply("divide", x, y, real=True)


def negative(x: ArrayLike) -> Value:
    """-x, elementwise."""
    return apply("negate", x, name="negative")


def positive(x: ArrayLike) -> Value:
    """+x: the numbers of `x`."""
    return own(as_value(x))


def abs(x: ArrayLike) -> Value:
    """|x|, elementwise; the most negative integer stays as it is."""
    value = as_value(x)
    return own(value) if value.type.dtype.kind in ("uint", "bool") else apply("abs", value)


def fabs(x: ArrayLike) -> Value:
    """|x|, elementwise, as a float, of real numbers."""
    return abs(real_numbers("fabs", x))


def sign(x: ArrayLike) -> Value:
    """-1, 0 or 1 by the sign of each element, in the dtype of `x`; NaN stays NaN.

    Of a complex number z/|z|, and 0 at 0; with one infinite part that part's sign, with two NaN.
    """
    value = as_value(x)
    if not value.type.dtype.is_complex:
        return apply("sign", value)
    parts = [bind(side, value) for side in ("real", "imag")]
    sizes = [abs(part) for part in parts]
    # Of z over its greater part, which nothing overflows or vanishes in; that has the derivative of z/|z|.
    largest = bind("stop_gradient", bind("maximum", *sizes))
    infinite = [apply("equal", size, math.inf) for size in sizes]
    is_zero = apply("equal", largest, 0.0)
    divisor = bind("where", is_zero, constant(1.0, largest.type), largest)
    held = [
        bind("where", one, apply("sign", part), divide(part, divisor))
        for part, one in zip(parts, infinite, strict=True)
    ]
    scaled = bind("complex", *held)
    length = abs(scaled)
    unit = divide(scaled, bind("where", is_zero, constant(1.0, length.type), length))
    unit = bind("where", bind("and", *infinite), constant(complex(math.nan, math.nan), unit.type), unit)
    return with_weak(bind("where", is_zero, value, unit), value.weak)


def square(x: ArrayLike) -> Value:
    """x * x, elementwise; of truth values in int32."""
    value = as_value(x)
    if value.type.dtype == bool_:
        value = cast(value, int32)
    return multiply(value, value)


def reciprocal(x: ArrayLike) -> Value:
    """1 / x, elementwise, as a float."""
    value = as_value(x)
    return with_weak(divide(1.0, as_floating(value)), value.weak)
