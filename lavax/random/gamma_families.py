"""Continuous distributions computed from gamma numbers, with their gradients."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import DType
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.random.continuous import standard_exponential, standard_normal
from lavax.random.discrete import rademacher
from lavax.random.gamma import computing, gamma_numbers, log_gamma_numbers
from lavax.random.keys import split
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

Extents = int | Sequence[int]


def _chisquare(name: str, key: ArrayLike, df: Value, dtype: DType) -> Value:
    half = lnp.multiply(df, 0.5)
    return lnp.multiply(lnp.exp(log_gamma_numbers(name, key, half, df.shape, dtype)), 2.0)


@one_program("shape", "dtype")
def chisquare(
    key: ArrayLike, df: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats from the chi-squared distribution of `df` degrees of freedom, by default of its shape."""
    held = floating_dtype("chisquare", dtype)
    freedom = spread_parameter(df, drawn_shape("chisquare", shape, df), computing(held))
    return cast(_chisquare("chisquare", key, freedom, computing(held)), held)


@one_program("shape", "dtype")
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Extents | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Floats from the F distribution of `dfnum` and `dfden` degrees of freedom, by default of their common shape."""
    held = floating_dtype("f", dtype)
    extents = drawn_shape("f", shape, dfnum, dfden)
    above, below = (spread_parameter(df, extents, computing(held)) for df in (dfnum, dfden))
    for_below, for_above = split(key)
    numerator = lnp.divide(_chisquare("f", for_above, above, computing(held)), above)
    return cast(lnp.divide(numerator, lnp.divide(_chisquare("f", for_below, below, computing(held)), below)), held)


@one_program("shape", "dtype")
def t(
    key: ArrayLike, df: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats from Student's t distribution of `df` degrees of freedom, by default of its shape."""
    held = floating_dtype("t", dtype)
    extents = drawn_shape("t", shape, df)
    half = lnp.multiply(spread_parameter(df, extents, computing(held)), 0.5)
    for_normal, for_gamma = split(key)
    drawn = standard_normal("t", for_normal, extents, computing(held))
    return cast(lnp.multiply(drawn, lnp.sqrt(lnp.divide(half, gamma_numbers("t", for_gamma, half, extents,
                                                                            computing(held))))), held)  # fmt: skip


@one_program("p", "shape", "dtype")
def generalized_normal(
    key: ArrayLike, p: float, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats of `shape` with a density proportional to exp(-|x|^p)."""
    held = floating_dtype("generalized_normal", dtype)
    extents = checked_shape("generalized_normal", shape)
    return cast(_generalized_normal(key, float(p), extents, computing(held)), held)


def _generalized_normal(key: ArrayLike, p: float, shape: tuple[int, ...], dtype: DType) -> Value:
    for_size, for_sign = split(key)
    size = lnp.power(gamma_numbers("generalized_normal", for_size, 1 / p, shape, dtype), 1 / p)
    return lnp.multiply(rademacher(for_sign, shape, dtype), size)


@one_program("d", "p", "shape", "dtype")
def ball(
    key: ArrayLike, d: int, p: float = 2, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Points [*shape, d], uniform over the ball of points of `p`-norm at most 1.

    By Barthe, Guédon, Mendelson and Naor (2005).
    """
    held = floating_dtype("ball", dtype)
    batch, (count,) = checked_shape("ball", shape), checked_shape("ball", d)
    for_point, for_rest = split(key)
    point = _generalized_normal(for_point, float(p), (*batch, count), computing(held))
    rest = standard_exponential("ball", for_rest, batch, computing(held))
    norm = lnp.power(lnp.add(lnp.sum(lnp.power(lnp.abs(point), float(p)), -1), rest), 1 / float(p))
    return cast(lnp.divide(point, lnp.expand_dims(norm, -1)), held)
