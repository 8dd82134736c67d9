"""Elementwise functions with the strict types of jax.lax: shapes are equal, or an operand is a scalar."""
from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import nn
from lavax.ir.monoids import BY_JOIN
from lavax.lax.creation import bitcast_convert_type
from lavax.lax.operands import (
    ALL,
    ANALYTIC,
    ANY,
    BITS,
    FIELDS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    accepted,
    of_one_dtype,
    of_one_shape,
)
from lavax.numpy._core.application import apply
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.scipy import special
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.values.value import Value

_Function = Callable[..., Any]


class RoundingMethod(enum.IntEnum):
    """How `round` treats halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """Names of accuracies, which functions take and which change nothing."""

    DEFAULT = 0
    HIGHEST = 1


def _unary(name: str, function: _Function, kinds: tuple[str, ...] = FLOATS) -> _Function:
    def applied(x: ArrayLike, *, accuracy: Any = None) -> Value:
        result: Value = function(*accepted(name, kinds, x))
        return result

    return _named(applied, name, f"`{name}` of each element. `accuracy` is taken, and changes nothing.")


def _together(name: str, kinds: tuple[str, ...], *operands: ArrayLike) -> list[Value]:
    return of_one_shape(name, accepted(name, kinds, *of_one_dtype(name, *operands)))


def _nary(name: str, function: _Function, kinds: tuple[str, ...] = NUMBERS, count: int = 2) -> _Function:
    def of_two(x: ArrayLike, y: ArrayLike) -> Value:
        result: Value = function(*_together(name, kinds, x, y))
        return result

    def of_three(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
        result: Value = function(*_together(name, kinds, a, b, x))
        return result

    text = f"`{name}` of equal places. Operands have one shape and dtype, or are scalars."
    return _named(of_two if count == 2 else of_three, name, text)


def _named(function: _Function, name: str, text: str) -> _Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


abs = _unary("abs", lnp.abs, FIELDS)
acos = _unary("acos", lnp.acos, ANALYTIC)
acosh = _unary("acosh", lnp.acosh, ANALYTIC)
asin = _unary("asin", lnp.asin, ANALYTIC)
asinh = _unary("asinh", lnp.asinh, ANALYTIC)
atan = _unary("atan", lnp.atan, ANALYTIC)
atanh = _unary("atanh", lnp.atanh, ANALYTIC)
bessel_i0e = _unary("bessel_i0e", special.i0e)
bessel_i1e = _unary("bessel_i1e", special.i1e)
bitwise_not = _unary("bitwise_not", lnp.bitwise_invert, BITS)
cbrt = _unary("cbrt", lnp.cbrt)
ceil = _unary("ceil", lnp.ceil)
cos = _unary("cos", lnp.cos, ANALYTIC)
cosh = _unary("cosh", lnp.cosh, ANALYTIC)
digamma = _unary("digamma", special.digamma)
erf = _unary("erf", special.erf)
erf_inv = _unary("erf_inv", special.erfinv)
erfc = _unary("erfc", special.erfc)
exp = _unary("exp", lnp.exp, ANALYTIC)
exp2 = _unary("exp2", lnp.exp2, ANALYTIC)
expm1 = _unary("expm1", lnp.expm1, ANALYTIC)
floor = _unary("floor", lnp.floor)
is_finite = _unary("is_finite", lnp.isfinite, ANALYTIC)
lgamma = _unary("lgamma", special.gammaln)
log = _unary("log", lnp.log, ANALYTIC)
log1p = _unary("log1p", lnp.log1p, ANALYTIC)
logistic = _unary("logistic", nn.sigmoid, ANALYTIC)
neg = _unary("neg", lnp.negative, FIELDS)
reciprocal = _unary("reciprocal", lnp.reciprocal, ANALYTIC)
rsqrt = _unary("rsqrt", lnp.rsqrt, ANALYTIC)
sign = _unary("sign", lnp.sign, FIELDS)
sin = _unary("sin", lnp.sin, ANALYTIC)
sinh = _unary("sinh", lnp.sinh, ANALYTIC)
sqrt = _unary("sqrt", lnp.sqrt, ANALYTIC)
square = _unary("square", lnp.square, FIELDS)
tan = _unary("tan", lnp.tan, ANALYTIC)
tanh = _unary("tanh", lnp.tanh, ANALYTIC)


def _quotient(x: Value, y: Value) -> Any:
    """Integers are divided towards zero, as in C."""
    if x.type.dtype.is_inexact or y.type.dtype.is_inexact:
        return lnp.divide(x, y)
    return apply("divide", x, y)  # by zero: all bits, as XLA has it


def _of_width(x: Value, kind: str) -> Any:
    """The bits of x as those of a signed ("int") or unsigned ("uint") integer of its width."""
    return bitcast_convert_type(x, f"{kind}{x.type.dtype.numpy.itemsize * 8}")


def _logical_shift(x: Value, y: Value) -> Any:
    shifted = lnp.right_shift(_of_width(x, "uint"), lnp.astype(y, f"uint{x.type.dtype.numpy.itemsize * 8}"))
    return bitcast_convert_type(shifted, x.dtype)


def _arithmetic_shift(x: Value, y: Value) -> Any:
    shifted = lnp.right_shift(_of_width(x, "int"), lnp.astype(y, f"int{x.type.dtype.numpy.itemsize * 8}"))
    return bitcast_convert_type(shifted, x.dtype)


def _high_product(x: Value, y: Value) -> Any:
    """The upper half of the bits of the product, from products of half the width."""
    bits = x.type.dtype.numpy.itemsize * 4
    if bits < 16:  # the product fits a word
        return lnp.astype(lnp.right_shift(lnp.astype(x, lnp.int32) * lnp.astype(y, lnp.int32), 2 * bits), x.dtype)
    mask = (1 << bits) - 1

    def low(v: Value) -> Value:
        return v & mask

    def high(v: Value) -> Value:
        return lnp.right_shift(v, bits)

    middle = high(x) * low(y) + high(low(x) * low(y))
    return high(x) * high(y) + high(middle) + high(low(x) * high(y) + low(middle))


add = _nary("add", lnp.add, FIELDS)
atan2 = _nary("atan2", lnp.atan2, ANALYTIC)
bitwise_and = _nary("bitwise_and", lnp.bitwise_and, BITS)
bitwise_or = _nary("bitwise_or", lnp.bitwise_or, BITS)
bitwise_xor = _nary("bitwise_xor", lnp.bitwise_xor, BITS)
div = _nary("div", _quotient, FIELDS)
eq = _nary("eq", lnp.equal, ANY)
ge = _nary("ge", lnp.greater_equal, ALL)
gt = _nary("gt", lnp.greater, ALL)
le = _nary("le", lnp.less_equal, ALL)
lt = _nary("lt", lnp.less, ALL)
max = _nary("max", lnp.maximum, ANY)
min = _nary("min", lnp.minimum, ANY)
mulhi = _nary("mulhi", _high_product, INTEGERS)
ne = _nary("ne", lnp.not_equal, ANY)
rem = _nary("rem", lnp.fmod)
shift_left = _nary("shift_left", lnp.left_shift, INTEGERS)
shift_right_arithmetic = _nary("shift_right_arithmetic", _arithmetic_shift, INTEGERS)
shift_right_logical = _nary("shift_right_logical", _logical_shift, INTEGERS)
sub = _nary("sub", lnp.subtract, FIELDS)
betainc = _nary("betainc", special.betainc, FLOATS, 3)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Value:
    """Products of equal places, in `out_dtype` if one is given."""
    left, right = _together("mul", FIELDS, x, y)
    if out_dtype is not None:
        left, right = lnp.astype(left, out_dtype), lnp.astype(right, out_dtype)
    return lnp.multiply(left, right)


def pow(x: ArrayLike, y: ArrayLike) -> Value:
    """x to the power of y, where y may be an integer though x is a float."""
    left, right = as_value(x), as_value(y)
    if right.type.dtype.is_integer and left.type.dtype.is_inexact:
        return lnp.power(left, lnp.astype(right, left.dtype))
    return lnp.power(*_together("pow", ANALYTIC, left, right))


def integer_pow(x: ArrayLike, y: int) -> Value:
    """x to the power of the Python integer y."""
    (value,) = accepted("integer_pow", FIELDS, x)
    return lnp.power(value, operator.index(y))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Value:
    """x where it lies between the bounds, else the nearer bound; bounds are scalars or have the shape of x."""
    low, value, high = of_one_dtype("clamp", min, x, max)
    for bound in (low, high):
        if bound.shape not in ((), value.shape):
            raise shape_error(f"lax.clamp: bounds are scalars or have the shape of x, {value.type}, got {bound.type}")
    held: Value = lnp.minimum(lnp.maximum(value, low), high)
    return held


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Value:
    """The nearest whole number; halves away from zero, or to the even one."""
    value = as_value(x)
    if not value.type.dtype.is_float:
        raise dtype_error(f"lax.round: x is floating, got {value.type}")
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return lnp.round(value)
    whole = lnp.trunc(value)
    nearest: Value = whole + lnp.where(lnp.abs(value - whole) >= 0.5, lnp.sign(value), lnp.zeros_like(value))
    return nearest


def population_count(x: ArrayLike) -> Value:
    """The number of bits that are set, in the dtype of x."""
    (value,) = accepted("population_count", INTEGERS, x)
    return lnp.astype(lnp.bitwise_count(_of_width(value, "uint")), value.dtype)


def clz(x: ArrayLike) -> Value:
    """The number of zero bits before the first one that is set, in the dtype of x."""
    (value,) = accepted("clz", INTEGERS, x)
    bits = value.type.dtype.numpy.itemsize * 8
    filled = _of_width(value, "uint")
    for step in (1, 2, 4, 8, 16, 32):
        if step < bits:
            filled = filled | lnp.right_shift(filled, step)
    return lnp.astype(bits - lnp.astype(lnp.bitwise_count(filled), lnp.int32), value.dtype)


def igamma(a: ArrayLike, x: ArrayLike) -> Value:
    """The lower incomplete gamma function, regularized. Operands have one shape and dtype, or are scalars."""
    return special.gammainc(*_together("igamma", FLOATS, a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Value:
    """The upper incomplete gamma function, regularized. Operands have one shape and dtype, or are scalars."""
    return special.gammaincc(*_together("igammac", FLOATS, a, x))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The next float after `x1` on the way to `x2`. Operands have one shape and dtype, or are scalars."""
    return lnp.nextafter(*_together("nextafter", FLOATS, x1, x2))


def polygamma(m: ArrayLike, x: ArrayLike) -> Value:
    """The derivative number `m` of `digamma`. Operands have one shape and dtype, or are scalars."""
    return special.polygamma(*_together("polygamma", FLOATS, m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Value:
    """Hurwitz's zeta function. Operands have one shape and dtype, or are scalars."""
    return special.zeta(*_together("zeta", FLOATS, x, q))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Value:
    """The derivative of `igamma` by its first argument."""
    left, right = _together("igamma_grad_a", FLOATS, a, x)
    found: Value = jvp(lambda order: special.gammainc(order, right), (left,), (lnp.ones_like(left),))[1]
    return found


def conj(x: ArrayLike) -> Value:
    """The complex conjugates, which are complex for floats too."""
    (value,) = accepted("conj", ANALYTIC, x)
    return lnp.conj(value + lnp.complex64(0) if value.type.dtype.is_float else value)


def real(x: ArrayLike) -> Value:
    """The real parts; x itself if its dtype is real."""
    return lnp.real(x)


def imag(x: ArrayLike) -> Value:
    """The imaginary parts; zeros if the dtype of x is real."""
    return lnp.imag(x)


@functools.cache
def joins() -> dict[Any, str]:
    """Functions of two operands by which reductions join: lax's, lavax.numpy's and Python's."""
    strict = {"sum": add, "prod": mul, "max": max, "min": min}
    found: dict[Any, str] = {function: name for name, function in strict.items()}
    found.update((getattr(lnp, join), monoid.reduction) for join, monoid in BY_JOIN.items())
    return found | {operator.add: "sum", operator.mul: "prod"}
