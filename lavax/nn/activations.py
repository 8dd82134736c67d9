"""Activations: elementwise functions of one array, as in jax.nn and torch.nn.functional.

Values of 16 bits are computed in float32 and rounded once. Derivatives at kinks are those of JAX, except that relu6
and the functions based on it have 0 there.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

import numpy as np

from lavax.ir.types import float32
from lavax.numpy._core.application import apply, as_floating
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy.arrays.splitting import split
from lavax.numpy.elementwise.arithmetic import abs as absolute
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, square, subtract
from lavax.numpy.elementwise.comparison import equal, greater, greater_equal, less, less_equal, logical_or
from lavax.numpy.elementwise.comparison import where as choice
from lavax.numpy.elementwise.exponential import exp, expm1, log1p
from lavax.numpy.elementwise.extrema import clip, maximum
from lavax.numpy.elementwise.hyperbolic import tanh
from lavax.numpy.elementwise.powers import sqrt
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "logistic",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "soft_sign",
    "softplus",
    "softshrink",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "tanhshrink",
    "threshold",
]

# Klambauer et al., "Self-Normalizing Neural Networks" (2017), equation 14: they keep mean 0 and variance 1.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _rounded_once(function: Callable[..., Value]) -> Callable[..., Value]:
    """`function` of floats; 16-bit floats are computed in float32, and the result is rounded to their dtype."""

    @wraps(function)
    def activation(x: ArrayLike, *arguments: Any, **keywords: Any) -> Value:
        value = as_floating(x)
        dtype = value.type.dtype
        wide = cast(value, float32) if dtype.bits < 32 else value
        return cast(function(wide, *arguments, **keywords), dtype)

    return one_program("approximate")(activation)


def identity(x: ArrayLike) -> Value:
    """`x`."""
    return own(as_value(x))


def relu(x: ArrayLike) -> Value:
    """max(x, 0), in the dtype of `x`."""
    value = as_value(x)
    return choice(less_equal(value, 0), 0, value)


@one_program(scalars=True)
def relu6(x: ArrayLike) -> Value:
    """min(max(x, 0), 6), in the dtype of `x`."""
    value = relu(x)
    return choice(greater_equal(value, 6), 6, value)


def sigmoid(x: ArrayLike) -> Value:
    """1 / (1 + exp(-x)), without overflow."""
    return apply("logistic", x, name="sigmoid", real=True)


def _times_share(
    far: float, share: Callable[[Value], Value], density: Callable[[Value, Value], Value]
) -> Callable[[Value], Value]:
    """x · share(x), with 0 at -inf, for a share that is 0 below -far and 1 above far to the last place.

    `density` is the derivative of the share, by `x` cut off at these ends, which does not overflow, and the share. That
    of the whole is one factor, of `x` alone, so that the rest of a derivative is a product.
    """

    @custom_jvp
    def product(x: Value) -> Value:
        return multiply(maximum(x, -far), share(x))

    @product.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,) = primals
        near, part = clip(x, -far, far), share(x)
        return product(x), multiply(add(part, multiply(near, density(near, part))), tangents[0])

    return product


def _variance(share: Value) -> Value:
    return multiply(share, subtract(1.0, share))


_silu = _times_share(1000.0, sigmoid, lambda near, share: _variance(share))


@_rounded_once
def log_sigmoid(x: Value) -> Value:
    """log(sigmoid(x)), exact for small probabilities too."""
    return negative(softplus(negative(x)))


@_rounded_once
def softplus(x: Value) -> Value:
    """log(1 + exp(x)), without overflow."""
    above = greater(x, 0)
    return add(choice(above, x, 0.0), log1p(exp(choice(above, negative(x), x))))


@_rounded_once
def silu(x: Value) -> Value:
    """x · sigmoid(x); 0 at -inf."""
    return _silu(x)


@_rounded_once
def mish(x: Value) -> Value:
    """x · tanh(log(1 + exp(x))); 0 at -inf. Misra (2019)."""
    return multiply(_finite_below(x), tanh(softplus(x)))


_STEEP, _CUBIC = 2 * math.sqrt(2 / math.pi), 0.044715 * 2 * math.sqrt(2 / math.pi)
_FAR = 100.0


def _share_by_tanh(x: Value) -> Value:
    """sigmoid(2u) = (1 + tanh(u)) / 2, without loss, and without a square that overflows."""
    near = clip(x, -_FAR, _FAR)
    return sigmoid(multiply(near, add(_STEEP, multiply(_CUBIC, square(near)))))


def _density_by_tanh(near: Value, share: Value) -> Value:
    return multiply(_variance(share), add(_STEEP, multiply(3 * _CUBIC, square(near))))


def _exact_share(x: Value) -> Value:
    return multiply(0.5, apply("erfc", multiply(-math.sqrt(0.5), x)))


def _exact_density(near: Value, share: Value) -> Value:
    return multiply(1 / math.sqrt(2 * math.pi), exp(multiply(-0.5, square(near))))


_gelu_by_tanh = _times_share(_FAR, _share_by_tanh, _density_by_tanh)
_exact_gelu = _times_share(_FAR, _exact_share, _exact_density)

# jax.nn's and PyTorch's words for gelu's `approximate` -> whether it is.
_APPROXIMATIONS = {True: True, False: False, "tanh": True, "none": False}


@_rounded_once
def gelu(x: Value, approximate: bool | Literal["tanh", "none"] = True) -> Value:
    """x · Φ(x), with Φ the cumulative distribution function of the normal distribution; 0 at -inf.

    `approximate` (or "tanh"): Φ as (1 + tanh(sqrt(2/π) · (x + 0.044715 · x³))) / 2, as by default in JAX. False (or
    "none") is exact, as by default in PyTorch. Hendrycks and Gimpel (2016), section 2. Raises ValueError for another
    word.
    """
    if approximate not in _APPROXIMATIONS:
        raise ValueError(f"gelu: approximate is True, False, 'tanh' or 'none', got {approximate!r}")
    return _gelu_by_tanh(x) if _APPROXIMATIONS[approximate] else _exact_gelu(x)


def _finite_below(x: Value) -> Value:
    """`x` with its dtype's least finite number instead of -inf, so that its product with 0 is 0."""
    return choice(equal(x, -math.inf), float(np.finfo(x.type.dtype.numpy).min), x)


@_rounded_once
def leaky_relu(x: Value, negative_slope: ArrayLike = 0.01) -> Value:
    """x where x >= 0, else negative_slope · x."""
    return choice(greater_equal(x, 0), x, multiply(negative_slope, x))


def _grown(x: Value) -> Value:
    """exp(x) - 1 below 0, and 0 above, where it is not used and must not overflow."""
    return expm1(choice(greater(x, 0), 0.0, x))


@_rounded_once
def elu(x: Value, alpha: ArrayLike = 1.0) -> Value:
    """x where x > 0, else alpha · (exp(x) - 1)."""
    return choice(greater(x, 0), x, multiply(alpha, _grown(x)))


@_rounded_once
def celu(x: Value, alpha: ArrayLike = 1.0) -> Value:
    """x where x > 0, else alpha · (exp(x / alpha) - 1). Barron (2017)."""
    return choice(greater(x, 0), x, multiply(alpha, _grown(divide(x, alpha))))


@_rounded_once
def selu(x: Value) -> Value:
    """1.0507 · elu(x, 1.6733), with the constants of self-normalizing networks."""
    return choice(greater(x, 0), multiply(_SELU_SCALE, x), multiply(_SELU_SCALE * _SELU_ALPHA, _grown(x)))


@_rounded_once
def prelu(x: Value, weight: ArrayLike) -> Value:
    """x where x >= 0, else weight · x, with a learned `weight`: a number, or one for each channel of [N, C, ...].

    He et al. (2015), "Delving deep into rectifiers", equation 1. Raises ShapeError for another shape.
    """
    slope = as_floating(weight)
    if slope.size != 1 and slope.shape != x.shape[1:2]:
        raise shape_error(f"prelu: weight is one number, or one for each channel of {x.type}, got {slope.type}")
    per_channel = reshaped(slope, () if slope.size == 1 else (slope.size, *(1 for _ in x.shape[2:])))
    return choice(greater_equal(x, 0), x, multiply(per_channel, x))


def threshold(x: ArrayLike, threshold: ArrayLike, value: ArrayLike) -> Value:
    """x where it exceeds `threshold`, else `value`."""
    given = as_floating(x)
    return choice(greater(given, threshold), given, cast(as_value(value), given.type.dtype))


def hard_shrink(x: ArrayLike, lambd: ArrayLike = 0.5) -> Value:
    """x where |x| > lambd, else 0."""
    value = as_floating(x)
    return choice(less_equal(absolute(value), lambd), 0.0, value)


@_rounded_once
def soft_shrink(x: Value, lambd: ArrayLike = 0.5) -> Value:
    """x moved towards 0 by `lambd`, and 0 where |x| <= lambd."""
    outer = choice(greater(x, 0), subtract(x, lambd), add(x, lambd))
    return choice(less_equal(absolute(x), lambd), 0.0, outer)


@_rounded_once
def tanh_shrink(x: Value) -> Value:
    """x - tanh(x)."""
    return subtract(x, tanh(x))


@one_program(integers=True)
def hard_tanh(x: ArrayLike, min_val: ArrayLike = -1.0, max_val: ArrayLike = 1.0) -> Value:
    """x clipped to min_val … max_val."""
    value = as_floating(x)
    low, high = (cast(as_value(bound), value.type.dtype) for bound in (min_val, max_val))
    return choice(greater(value, high), high, choice(greater(low, value), low, value))


# The derivatives of these two are chosen, not products: 0 at NaN of the first, as in JAX, and finite at infinities.
@custom_jvp
def _hard_sigmoid(x: Value) -> Value:
    return divide(relu6(add(x, 3.0)), 6.0)


@_hard_sigmoid.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    inside = less(absolute(x), 3.0)
    return _hard_sigmoid(x), choice(inside, multiply(tangent, 1 / 6), 0.0)


@custom_jvp
def _hard_silu(x: Value) -> Value:
    return multiply(_finite_below(x), _hard_sigmoid(x))


@_hard_silu.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    between = choice(greater_equal(x, 3.0), 1.0, multiply(add(x, 1.5), 1 / 3))
    return _hard_silu(x), multiply(tangent, choice(less_equal(x, -3.0), 0.0, between))


@_rounded_once
def hard_sigmoid(x: Value) -> Value:
    """relu6(x + 3) / 6."""
    found: Value = _hard_sigmoid(x)
    return found


@_rounded_once
def hard_silu(x: Value) -> Value:
    """x · hard_sigmoid(x); 0 at -inf."""
    found: Value = _hard_silu(x)
    return found


@_rounded_once
def soft_sign(x: Value) -> Value:
    """x / (1 + |x|)."""
    return divide(x, add(1.0, absolute(x)))


@_rounded_once
def squareplus(x: Value, b: ArrayLike = 4.0) -> Value:
    """(x + sqrt(x² + b)) / 2. Barron (2021)."""
    return multiply(0.5, add(x, sqrt(add(square(x), b))))


@_rounded_once
def sparse_plus(x: Value) -> Value:
    """0 up to -1, x from 1 on, and (x + 1)² / 4 in between."""
    below, above = less_equal(x, -1.0), greater_equal(x, 1.0)
    near = choice(logical_or(below, above), 1.0, x)
    return choice(below, 0.0, choice(above, x, multiply(0.25, square(add(near, 1.0)))))


@_rounded_once
def sparse_sigmoid(x: Value) -> Value:
    """(x + 1) / 2 clipped to 0 … 1: the derivative of sparse_plus."""
    return multiply(0.5, clip(add(x, 1.0), 0.0, 2.0))


def glu(x: ArrayLike, axis: int = -1) -> Value:
    """The first half of `x` along `axis` times the sigmoid of the second. Dauphin et al. (2017).

    Raises ShapeError if the extent of the axis is odd.
    """
    value = as_floating(x)
    place = normal_axis("glu", axis, value.type)
    if value.shape[place] % 2:
        raise shape_error(f"glu: axis {axis} of {value.type} has an odd length, and is taken in two halves")
    first, second = split(value, 2, place)
    return multiply(first, sigmoid(second))


logistic = sigmoid
swish = silu
hard_swish = hard_silu
# PyTorch's spelling.
hardshrink = hard_shrink
hardsigmoid = hard_sigmoid
hardswish = hard_silu
hardtanh = hard_tanh
logsigmoid = log_sigmoid
softshrink = soft_shrink
softsign = soft_sign
tanhshrink = tanh_shrink
