"""Powers, exponentials and hyperbolic functions that are written in terms of others."""
from __future__ import annotations

import math

from lavax.ir.types import DType, TensorType, int32
from lavax.numpy.application import as_floating, together
from lavax.numpy.broadcasting import common_shape, fit
from lavax.numpy.comparison import greater, less, not_equal, where
from lavax.numpy.elementwise import (
    abs,
    add,
    divide,
    exp,
    expm1,
    log,
    log1p,
    multiply,
    negative,
    rsqrt,
    sqrt,
    subtract,
)
from lavax.numpy.errors import dtype_error
from lavax.numpy.operands import ArrayLike, Scalar, Splat, as_operand, cast
from lavax.numpy.promotion import promote
from lavax.tracer import bind, with_weak
from lavax.tracer.value import Value

# Up to this exponent repeated multiplication is both faster and at least as exact as `power`.
_LARGEST_PRODUCT = 8
_ROOTS = {0.5: sqrt, -0.5: rsqrt}


def power(x: ArrayLike, y: ArrayLike) -> Value:
    """x to the power y, elementwise.

    A scalar exponent known while tracing becomes multiplications if it is a small integer, and a root if it is
    a half. Integers wrap; those with a negative exponent in an array give what the exact result truncates to.
    Raises DtypeError for integers to a negative scalar exponent.
    """
    base, exponent = as_operand(x), as_operand(y)
    dtype, weak = promote([base, exponent])
    dtype = int32 if dtype.kind == "bool" else dtype
    result: Value | None = None
    if isinstance(exponent, Splat) and isinstance(base, Value):
        result = _static_power(base, exponent.value, dtype)
    if result is None:
        type = TensorType(common_shape("power", [base, exponent]), dtype)
        result = bind("power", fit(base, type), fit(exponent, type))
    return with_weak(result, True) if weak else result


def _static_power(base: Value, exponent: Scalar, dtype: DType) -> Value | None:
    """The power by multiplications or roots, or None where that is not the way."""
    if dtype.is_integer and exponent < 0:
        raise dtype_error(f"power: {base.type} cannot be raised to {exponent}; make it a float first, by astype")
    if dtype.is_float and exponent in _ROOTS:
        return _ROOTS[float(exponent)](cast(base, dtype))
    if not math.isfinite(exponent) or exponent != int(exponent) or math.fabs(exponent) > _LARGEST_PRODUCT:
        return None
    product = _repeated_product(cast(base, dtype), int(math.fabs(exponent)))
    return divide(1.0, product) if exponent < 0 else product


def _repeated_product(base: Value, exponent: int) -> Value:
    """The power by squaring: at most 2 log2(exponent) multiplications."""
    if exponent == 0:
        return fit(as_operand(1), TensorType(base.shape, base.type.dtype))
    product: Value | None = None
    while True:
        if exponent & 1:
            product = base if product is None else multiply(product, base)
        exponent >>= 1
        if not exponent:
            assert product is not None
            return product
        base = multiply(base, base)


def exp2(x: ArrayLike) -> Value:
    """2 to the power of `x`, elementwise."""
    return power(2.0, as_floating(x))


def log2(x: ArrayLike) -> Value:
    """The logarithm to base 2, elementwise."""
    return divide(log(x), math.log(2.0))


def log10(x: ArrayLike) -> Value:
    """The logarithm to base 10, elementwise."""
    return divide(log(x), math.log(10.0))


def logaddexp(x: ArrayLike, y: ArrayLike) -> Value:
    """log(exp(x) + exp(y)), elementwise, without overflow."""
    (first, second), weak = together("logaddexp", x, y, real=True)
    difference = subtract(first, second)
    # Two equal infinities have no difference: there, and for NaN, the sum is the answer.
    undefined = not_equal(difference, difference)
    # Choices, not `maximum` and `abs`: at a tie they keep derivatives of every order.
    above = greater(first, second)
    peak, gap = where(above, first, second), where(above, negative(difference), difference)
    softened = add(peak, log1p(exp(where(undefined, 0.0, gap))))
    return with_weak(where(undefined, add(first, second), softened), weak)


def _half_exponentials(value: Value) -> tuple[Value, Value]:
    """exp(x) / 2 and exp(-x) / 2, by way of roots: neither they nor their derivatives overflow before they must."""
    root, inverse = exp(multiply(value, 0.5)), exp(multiply(value, -0.5))
    return multiply(multiply(root, 0.5), root), multiply(multiply(inverse, 0.5), inverse)


def cosh(x: ArrayLike) -> Value:
    """The hyperbolic cosine, elementwise."""
    return add(*_half_exponentials(as_floating(x)))


def sinh(x: ArrayLike) -> Value:
    """The hyperbolic sine, elementwise; exact for small `x` too."""
    value = as_floating(x)
    is_small = less(abs(value), 1.0)
    growth = expm1(where(is_small, value, 0.0))
    small = multiply(add(growth, divide(growth, add(growth, 1.0))), 0.5)
    return where(is_small, small, subtract(*_half_exponentials(value)))
