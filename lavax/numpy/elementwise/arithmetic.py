"""Arithmetic and elementary functions, most of them one operation of the intermediate representation."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.location import named
from lavax.ir.types import bool_
from lavax.numpy._core.application import applied, apply, as_floating, together
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

__all__ = [
    "abs", "add", "cbrt", "clip", "cos", "divide", "exp", "exp2", "expm1", "fabs", "log", "log1p", "log2",
    "maximum", "minimum", "multiply", "negative", "positive", "reciprocal", "rsqrt", "sign", "sin", "sqrt",
    "square", "subtract", "tanh",
]  # fmt: skip

# Among truth values, sums and products are what they are in NumPy.
_OF_TRUTH_VALUES = {"add": "or", "multiply": "and"}


def real_function(op: str, meaning: str, name: str = "") -> Callable[[ArrayLike], Value]:
    """The array function of one operation on real numbers, named as the operation is if it has no `name` of its own."""

    def function(x: ArrayLike) -> Value:
        return apply(op, x, name=name or op, real=True)

    named(function, name or op, f"{meaning}, elementwise. Integers and truth values count as floats.")
    return function


def _arithmetic(op: str, meaning: str) -> Callable[[ArrayLike, ArrayLike], Value]:
    def function(x: ArrayLike, y: ArrayLike) -> Value:
        values, weak = together(op, x, y)
        return applied(_OF_TRUTH_VALUES.get(op, op) if values[0].type.dtype == bool_ else op, values, weak)

    named(function, op, f"{meaning}, elementwise, in the common shape and dtype of `x` and `y`.")
    return function


exp = real_function("exp", "e to the power of `x`")
exp2 = real_function("exp2", "2 to the power of `x`, exact for whole `x`")
expm1 = real_function("expm1", "exp(x) - 1, exact for small `x`")
log = real_function("log", "The natural logarithm")
log2 = real_function("log2", "The logarithm to base 2, exact for powers of 2")
log1p = real_function("log1p", "log(1 + x), exact for small `x`")
sqrt = real_function("sqrt", "The square root; NaN below 0")
rsqrt = real_function("rsqrt", "1 / sqrt(x)")
sin = real_function("sin", "The sine of `x` in radians")
cos = real_function("cos", "The cosine of `x` in radians")
cbrt = real_function("cbrt", "The cube root; real for negative numbers too")
tanh = real_function("tanh", "The hyperbolic tangent")

add = _arithmetic("add", "x + y")
subtract = _arithmetic("subtract", "x - y")
multiply = _arithmetic("multiply", "x * y")
maximum = _arithmetic("maximum", "The greater of `x` and `y`; NaN where either is")
minimum = _arithmetic("minimum", "The smaller of `x` and `y`; NaN where either is")


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


def fabs(x: ArrayLike) -> Value:
    """|x|, elementwise, as a float."""
    return abs(as_floating(x))


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
