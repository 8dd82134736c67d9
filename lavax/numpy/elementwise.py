"""Arithmetic and elementary functions: each one operation of the intermediate representation."""
from __future__ import annotations

import math
from collections.abc import Callable

from lavax.ir.types import bool_
from lavax.numpy.application import apply
from lavax.numpy.errors import dtype_error
from lavax.numpy.operands import ArrayLike, as_operand, as_value
from lavax.numpy.promotion import promote
from lavax.tracer.value import Value

# Among truth values, sums and products are what they are in NumPy.
_OF_TRUTH_VALUES = {"add": "or", "multiply": "and"}


def _unary(op: str, meaning: str) -> Callable[[ArrayLike], Value]:
    def function(x: ArrayLike) -> Value:
        return apply(op, x, real=True)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"{meaning}, elementwise. Integers and truth values count as floats."
    return function


def _arithmetic(op: str, meaning: str) -> Callable[[ArrayLike, ArrayLike], Value]:
    def function(x: ArrayLike, y: ArrayLike) -> Value:
        operands = as_operand(x), as_operand(y)
        dtype, _ = promote(operands)
        return apply(_OF_TRUTH_VALUES.get(op, op) if dtype == bool_ else op, *operands, name=op)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"{meaning}, elementwise, in the common shape and dtype of `x` and `y`."
    return function


exp = _unary("exp", "e to the power of `x`")
expm1 = _unary("expm1", "exp(x) - 1, exact for small `x`")
log = _unary("log", "The natural logarithm")
log1p = _unary("log1p", "log(1 + x), exact for small `x`")
sqrt = _unary("sqrt", "The square root; NaN below 0")
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
sin = _unary("sin", "The sine of `x` in radians")
cos = _unary("cos", "The cosine of `x` in radians")
tanh = _unary("tanh", "The hyperbolic tangent")

add = _arithmetic("add", "x + y")
subtract = _arithmetic("subtract", "x - y")
multiply = _arithmetic("multiply", "x * y")
maximum = _arithmetic("maximum", "The greater of `x` and `y`; NaN where either is")
minimum = _arithmetic("minimum", "The smaller of `x` and `y`; NaN where either is")


def tan(x: ArrayLike) -> Value:
    """The tangent of `x` in radians, elementwise."""
    value = as_value(x)
    return divide(sin(value), cos(value))


def radians(x: ArrayLike) -> Value:
    """Degrees to radians, elementwise."""
    return multiply(x, math.pi / 180)


def degrees(x: ArrayLike) -> Value:
    """Radians to degrees, elementwise."""
    return multiply(x, 180 / math.pi)


def divide(x: ArrayLike, y: ArrayLike) -> Value:
    """x / y, elementwise; the quotient of integers is a float."""
    return apply("divide", x, y, real=True)


def negative(x: ArrayLike) -> Value:
    """-x, elementwise."""
    return apply("negate", x, name="negative")


def positive(x: ArrayLike) -> Value:
    """+x: `x` itself."""
    return as_value(x)


def abs(x: ArrayLike) -> Value:
    """|x|, elementwise; the most negative integer stays as it is."""
    value = as_value(x)
    return value if value.type.dtype.kind in ("uint", "bool") else apply("abs", value)


def sign(x: ArrayLike) -> Value:
    """-1, 0 or 1 by the sign of each element, in the dtype of `x`; NaN stays NaN."""
    return apply("sign", x)


def square(x: ArrayLike) -> Value:
    """x * x, elementwise."""
    value = as_value(x)
    return multiply(value, value)


def reciprocal(x: ArrayLike) -> Value:
    """1 / x, elementwise, as a float."""
    return divide(1.0, x)


def clip(x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Value:
    """`x` held between `min` and `max`, elementwise; None is no bound. Where min > max the result is max."""
    result = as_value(x)
    if min is not None:
        result = maximum(result, min)
    return result if max is None else minimum(result, max)


def _bitwise(op: str, name: str, *arguments: ArrayLike) -> Value:
    operands = [as_operand(argument) for argument in arguments]
    if promote(operands)[0].is_float:
        types = " and ".join(str(operand.type) for operand in operands)
        raise dtype_error(f"{name} is not defined for {types}: integers and truth values only")
    return apply(op, *operands, name=name)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Value:
    """x & y, bit by bit; of integers or truth values."""
    return _bitwise("and", "bitwise_and", x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Value:
    """x | y, bit by bit; of integers or truth values."""
    return _bitwise("or", "bitwise_or", x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Value:
    """x ^ y, bit by bit; of integers or truth values."""
    return _bitwise("xor", "bitwise_xor", x, y)


def bitwise_invert(x: ArrayLike) -> Value:
    """~x, bit by bit; of integers or truth values."""
    return _bitwise("not", "bitwise_invert", x)
