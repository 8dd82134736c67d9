"""The gamma distribution, and what is made of it.

Marsaglia and Tsang (2000) propose a number and accept it with a probability of at least 0.95. Here every element
has a fixed number of proposals, drawn together, and takes the first that is accepted: no element waits for another.
That none is happens with a probability below 1e-13; the element is then the mode of the proposals.
No gradient passes to the parameters.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.numpy.errors import shape_error
from lavax.numpy.operands import ArrayLike, as_operand, cast
from lavax.random.continuous import standard_normal, uniform_between
from lavax.random.keys import result_shape, split
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.tracer import bind
from lavax.tracer.value import Value

Extents = int | Sequence[int]

_PROPOSALS = 10


class _Drawn(NamedTuple):
    """A gamma number in parts: scale * (1 + y)^3 * exp(log_boost)."""

    scale: Value
    y: Value
    log_boost: Value


def _standard_gamma(name: str, key: ArrayLike, a: ArrayLike, shape: tuple[int, ...]) -> _Drawn:
    """For a below 1 a number of parameter a + 1 times u^(1/a), so that both are exact where the product is not."""
    concentration = bind("stop_gradient", spread_parameter(a, shape, float32))
    for_y, for_u, for_boost = split(key, 3)
    large = lnp.greater_equal(concentration, 1.0)
    scale = lnp.subtract(lnp.where(large, concentration, lnp.add(concentration, 1.0)), 1 / 3)
    y = lnp.multiply(
        standard_normal(name, for_y, (_PROPOSALS, *shape)), lnp.divide(1 / 3, lnp.sqrt(scale))
    )
    accepted = _accepted(y, uniform_between(name, for_u, (_PROPOSALS, *shape)), scale)
    first = lnp.expand_dims(lnp.argmax(accepted, axis=0), 0)
    chosen = lnp.squeeze(lnp.take_along_axis(lnp.where(accepted, y, 0.0), first, axis=0), axis=0)
    log_u = lnp.log1p(lnp.negative(uniform_between(name, for_boost, shape)))
    log_boost = lnp.where(large, 0.0, lnp.divide(log_u, concentration))
    at_zero = lnp.where(lnp.equal(concentration, 0.0), -math.inf, log_boost)
    return _Drawn(scale, chosen, lnp.where(lnp.greater_equal(concentration, 0.0), at_zero, math.nan))


def _accepted(y: Value, u: Value, scale: Value) -> Value:
    """log u < x^2/2 + d (1 - v + log v) with v = (1 + y)^3 and x^2 = 9 d y^2, sorted so that little cancels."""
    curve = lnp.add(lnp.subtract(lnp.log1p(y), y), lnp.multiply(0.5, lnp.square(y)))
    bound = lnp.multiply(scale, lnp.subtract(lnp.multiply(3.0, curve), lnp.multiply(y, lnp.square(y))))
    return lnp.logical_and(lnp.greater(y, -1.0), lnp.less(lnp.log(u), bound))


def gamma(key: ArrayLike, a: ArrayLike, shape: Extents | None = None, dtype: Any = "float32") -> Value:
    """Floats from the gamma distribution of shape parameter `a` and scale 1; `shape` is that of `a` if not given.

    0 for a = 0, NaN for a negative one. See the module for how; no gradient passes to `a`.
    """
    held = floating_dtype("gamma", dtype)
    scale, y, log_boost = _standard_gamma("gamma", key, a, drawn_shape("gamma", shape, a))
    root = lnp.add(1.0, y)
    number = lnp.multiply(lnp.multiply(scale, lnp.multiply(root, lnp.square(root))), lnp.exp(log_boost))
    return cast(number, held)


def loggamma(key: ArrayLike, a: ArrayLike, shape: Extents | None = None, dtype: Any = "float32") -> Value:
    """The logarithms of the numbers of `gamma`, exact also where those are too small for a float."""
    held = floating_dtype("loggamma", dtype)
    return cast(_log_gamma("loggamma", key, a, drawn_shape("loggamma", shape, a)), held)


def _log_gamma(name: str, key: ArrayLike, a: ArrayLike, shape: tuple[int, ...]) -> Value:
    scale, y, log_boost = _standard_gamma(name, key, a, shape)
    return lnp.add(lnp.add(lnp.log(scale), lnp.multiply(3.0, lnp.log1p(y))), log_boost)


def beta(
    key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Extents | None = None, dtype: Any = "float32"
) -> Value:
    """Floats from the beta distribution of parameters `a` and `b`, whose common shape is `shape` if not given.

    NaN where a parameter is negative or both are 0. No gradient passes to the parameters.
    """
    held = floating_dtype("beta", dtype)
    extents = drawn_shape("beta", shape, a, b)
    first, second = (
        _log_gamma("beta", part, parameter, extents) for part, parameter in zip(split(key), (a, b), strict=True)
    )
    return cast(_part_of_sum(first, second), held)


def _part_of_sum(first: Value, second: Value) -> Value:
    """exp(first) / (exp(first) + exp(second))."""
    return lnp.divide(1.0, lnp.add(1.0, lnp.exp(lnp.subtract(second, first))))


def dirichlet(
    key: ArrayLike, alpha: ArrayLike, shape: Extents | None = None, dtype: Any = "float32"
) -> Value:
    """Floats from the Dirichlet distribution, which sum to 1 along the last axis, that of the parameters `alpha`.

    `shape` is that of the result without that axis; `alpha` must broadcast to it, and decides if it is not given.
    No gradient passes to `alpha`. Raises ShapeError where `alpha` has no axis.
    """
    held = floating_dtype("dirichlet", dtype)
    parameters = as_operand(alpha).shape
    if not parameters:
        raise shape_error("dirichlet: alpha must have at least one axis, along which the numbers sum to 1")
    batch = parameters[:-1] if shape is None else result_shape("dirichlet", shape)
    extents = drawn_shape("dirichlet", (*batch, parameters[-1]), alpha)
    logs = _log_gamma("dirichlet", key, alpha, extents)
    numbers = lnp.exp(lnp.subtract(logs, lnp.max(logs, axis=-1, keepdims=True)))
    return cast(lnp.divide(numbers, lnp.sum(numbers, axis=-1, keepdims=True)), held)
