"""Continuous distributions computed by a formula from uniform and normal draws."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.operands import ArrayLike, as_operand, cast
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.elementwise.comparison import where
from lavax.random.continuous import FORMATS, standard_exponential, standard_normal, uniform_between
from lavax.random.discrete import rademacher
from lavax.random.keys import split
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

Extents = int | Sequence[int]


@one_program("shape", "dtype")
def cauchy(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """Floats of `shape` from the Cauchy distribution of location 0 and scale 1: tan(pi (u - 1/2))."""
    held = floating_dtype("cauchy", dtype)
    u = uniform_between("cauchy", key, checked_shape("cauchy", shape), FORMATS[held].eps, 1.0, held)
    return lnp.tan(lnp.multiply(lnp.subtract(u, 0.5), math.pi))


@one_program("shape", "dtype")
def logistic(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """Floats of `shape` from the logistic distribution of location 0 and scale 1: log(u / (1 - u))."""
    held = floating_dtype("logistic", dtype)
    u = uniform_between("logistic", key, checked_shape("logistic", shape), FORMATS[held].tiny, 1.0, held)
    return lnp.subtract(lnp.log(u), lnp.log1p(lnp.negative(u)))


@one_program("shape", "dtype")
def lognormal(
    key: ArrayLike, sigma: ArrayLike = 1.0, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """exp(sigma x) of standard normal numbers x; by default of the shape of `sigma`."""
    held = floating_dtype("lognormal", dtype)
    extents = drawn_shape("lognormal", shape, sigma)
    drawn = standard_normal("lognormal", key, extents, held)
    return lnp.exp(lnp.multiply(drawn, spread_parameter(sigma, extents, held)))


@one_program("shape", "dtype")
def pareto(
    key: ArrayLike, b: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats from 1 on of the density b / x^(b + 1); by default of the shape of `b`."""
    held = floating_dtype("pareto", dtype)
    extents = drawn_shape("pareto", shape, b)
    drawn = standard_exponential("pareto", key, extents, held)
    return lnp.exp(lnp.divide(drawn, spread_parameter(b, extents, held)))


@one_program("shape", "dtype")
def rayleigh(
    key: ArrayLike, scale: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """scale sqrt(-2 log u); by default of the shape of `scale`."""
    held = floating_dtype("rayleigh", dtype)
    extents = drawn_shape("rayleigh", shape, scale)
    u = uniform_between("rayleigh", key, extents, dtype=held)
    return lnp.multiply(spread_parameter(scale, extents, held), lnp.sqrt(lnp.multiply(lnp.log(u), -2.0)))


@one_program("shape", "dtype")
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Extents | None = None,
    dtype: Any = None,
) -> Value:
    """scale e^(1/concentration) of exponential numbers e; by default of the common shape of the parameters."""
    held = floating_dtype("weibull_min", dtype)
    extents = drawn_shape("weibull_min", shape, scale, concentration)
    drawn = standard_exponential("weibull_min", key, extents, held)
    exponent = lnp.divide(1.0, spread_parameter(concentration, extents, held))
    return lnp.multiply(lnp.power(drawn, exponent), spread_parameter(scale, extents, held))


@one_program("shape", "dtype")
def maxwell(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """The lengths of vectors of three standard normal numbers."""
    held = floating_dtype("maxwell", dtype)
    drawn = standard_normal("maxwell", key, (*checked_shape("maxwell", shape), 3), held)
    return lnp.sqrt(lnp.sum(lnp.square(drawn), -1))


@one_program("shape", "dtype")
def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Extents = (), dtype: Any = None
) -> Value:
    """loc + scale x, with x a Maxwell number of random sign; `shape` precedes the shape of the parameters.

    Without `shape`, the shape of the parameters appears twice, as in JAX.
    """
    held = floating_dtype("double_sided_maxwell", dtype)
    own = lnp.broadcast_shapes(as_operand(loc).shape, as_operand(scale).shape)
    extents = (*(checked_shape("double_sided_maxwell", shape) or own), *own)
    for_length, for_sign = split(key)
    drawn = lnp.multiply(rademacher(for_sign, extents, held), maxwell(for_length, extents, held))
    place, factor = (spread_parameter(one, extents, held) for one in (loc, scale))
    return lnp.add(lnp.multiply(drawn, factor), place)


@one_program("shape", "dtype")
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Extents | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Floats of a density that rises from `left` to `mode` and falls to `right`; by default of their common shape."""
    held = floating_dtype("triangular", dtype)
    extents = drawn_shape("triangular", shape, left, mode, right)
    low, top, high = (spread_parameter(one, extents, held) for one in (left, mode, right))
    u = uniform_between("triangular", key, extents, dtype=held)
    width = lnp.subtract(high, low)
    rising = lnp.multiply(lnp.multiply(u, width), lnp.subtract(top, low))
    falling = lnp.multiply(lnp.multiply(lnp.subtract(1.0, u), width), lnp.subtract(high, top))
    is_below = lnp.less(u, lnp.divide(lnp.subtract(top, low), width))
    return where(is_below, lnp.add(low, lnp.sqrt(rising)), lnp.subtract(high, lnp.sqrt(falling)))


@one_program("shape", "dtype")
def wald(
    key: ArrayLike, mean: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats from the Wald (inverse Gaussian) distribution of scale 1; by default of the shape of `mean`.

    By Michael, Schucany and Haas (1976). Their smaller root is computed as the product of both roots over the larger,
    so that nothing cancels.
    """
    held = floating_dtype("wald", dtype)
    extents = drawn_shape("wald", shape, mean)
    centre = spread_parameter(mean, extents, held)
    for_root, for_choice = split(key)
    y = lnp.multiply(lnp.square(standard_normal("wald", for_root, extents, held)), centre)
    root = lnp.sqrt(lnp.multiply(y, lnp.add(4.0, y)))
    share = lnp.divide(2.0, lnp.add(lnp.add(2.0, y), root))
    u = uniform_between("wald", for_choice, extents, dtype=held)
    is_smaller = lnp.less_equal(u, lnp.divide(1.0, lnp.add(1.0, share)))
    return cast(lnp.multiply(centre, lnp.where(is_smaller, share, lnp.divide(1.0, share))), held)
