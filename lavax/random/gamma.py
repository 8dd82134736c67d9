"""The gamma distribution, by Marsaglia and Tsang's rejection (2000), and distributions of shares of gamma numbers.

Each element has its own key and draws proposals until one is accepted, all elements in parallel. float16 and bfloat16
numbers are rounded float32 ones. The gradient by a parameter is that of the quantile at the variate's probability
(Figurnov, Mohamed and Mnih 2018).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.ir.types import DTYPES, DType, float32
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_operand, cast
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.random.continuous import FORMATS, normal_of, uniform_of
from lavax.random.keys import Words, bits_of_each, key_of_each, split, split_each
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.random.rejection import until_each_ends
from lavax.scipy.incomplete_gamma import gamma_quantile_slope
from lavax.tracer import bind
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

Extents = int | Sequence[int]

_SQUEEZE = 0.0331  # below 1 - 0.0331 x^4 a proposal x is accepted without logarithms


class _Drawn(NamedTuple):
    """A gamma number in parts: scale * cube * exp(log_boost); exp(log_boost) is u^(1/a) below a = 1."""

    scale: Value
    cube: Value
    log_boost: Value


class _State(NamedTuple):
    """Per element: the keys of its next proposals, of the current one and of its uniform draw, and the result."""

    next: Words
    proposal: Words
    uniform: Words
    cube: Value
    accepted: Value


def computing(dtype: DType) -> DType:
    """The dtype in which rejection finds numbers of `dtype`."""
    return dtype if dtype.bits >= 32 else float32


def _standard_gamma(key: ArrayLike, a: ArrayLike, shape: tuple[int, ...], dtype: DType) -> _Drawn:
    """For a below 1, a number of parameter a + 1 and the factor u^(1/a), apart: both are exact, the product is not."""
    concentration = bind("stop_gradient", spread_parameter(a, shape, dtype))
    large = lnp.greater_equal(concentration, 1.0)
    scale = lnp.subtract(lnp.where(large, concentration, lnp.add(concentration, 1.0)), 1 / 3)
    usable = lnp.where(lnp.greater(scale, 0.0), scale, 1.0)  # for NaN and negative ones, so that the loop ends
    chain, for_boost = split_each(key_of_each(key, shape), 2)
    cube = _accepted_cube(chain, usable, dtype)
    log_u = lnp.log1p(lnp.negative(uniform_of(_bits(for_boost, dtype), 0.0, 1.0, dtype)))
    log_boost = lnp.where(large, 0.0, lnp.divide(log_u, concentration))
    at_zero = lnp.where(lnp.equal(concentration, 0.0), -math.inf, log_boost)
    return _Drawn(scale, cube, lnp.where(lnp.greater_equal(concentration, 0.0), at_zero, math.nan))


def _bits(keys: Words, dtype: DType) -> Value:
    return bits_of_each(keys, DTYPES[f"u{FORMATS[dtype].word}"])


def _accepted_cube(chain: Words, scale: Value, dtype: DType) -> Value:
    """(1 + x / (3 sqrt(scale)))^3 of the first normal number x that is accepted."""
    slope = lnp.divide(1 / 3, lnp.sqrt(scale))

    def is_open(state: _State) -> Value:
        return lnp.logical_not(state.accepted)

    def proposed(state: _State) -> _State:
        proposal, for_x = split_each(state.proposal, 2)
        x = normal_of(_bits(for_x, dtype), dtype)
        root = lnp.add(1.0, lnp.multiply(x, slope))
        cube = lnp.multiply(lnp.multiply(root, root), root)
        u = uniform_of(_bits(state.uniform, dtype), 0.0, 1.0, dtype)
        possible = lnp.greater(root, 0.0)
        fits = lnp.logical_and(possible, _fits(lnp.square(x), lnp.where(possible, cube, 1.0), u, scale))
        # If the root is below 0, another x is drawn and the uniform draw kept; after a rejection both are drawn again.
        again = lnp.logical_not(possible)
        following, for_proposal, for_uniform = split_each(state.next, 3)
        return _State(
            _chosen(again, state.next, following),
            _chosen(again, proposal, for_proposal),
            _chosen(again, state.uniform, for_uniform),
            cube,
            fits,
        )

    following, for_proposal, for_uniform = split_each(chain, 3)
    start = _State(following, for_proposal, for_uniform, lnp.ones_like(scale), lnp.zeros_like(scale, bool))
    return until_each_ends(is_open, proposed, start).cube


def _chosen(condition: Value, first: Words, second: Words) -> Words:
    return lnp.where(condition, first[0], second[0]), lnp.where(condition, first[1], second[1])


def _fits(square: Value, cube: Value, u: Value, scale: Value) -> Value:
    """Whether log u < x^2/2 + d (1 - v + log v); numbers below the squeeze always fit."""
    certain = lnp.less(u, lnp.subtract(1.0, lnp.multiply(_SQUEEZE, lnp.square(square))))
    bound = lnp.multiply(scale, lnp.add(lnp.subtract(1.0, cube), lnp.log(cube)))
    return lnp.logical_or(certain, lnp.less(lnp.log(u), lnp.add(lnp.multiply(square, 0.5), bound)))


@custom_jvp
def _followed(a: Value, number: Value) -> Value:
    """`number`, with its derivative by the parameter `a`."""
    return number


_followed.defjvps(
    lambda tangent, _, a, number: lnp.multiply(tangent, lnp.multiply(gamma_quantile_slope(a, number), number)), None
)


@custom_jvp
def _followed_by_logarithm(a: Value, logarithm: Value) -> Value:
    return logarithm


_followed_by_logarithm.defjvps(
    lambda tangent, _, a, logarithm: lnp.multiply(tangent, gamma_quantile_slope(a, lnp.exp(logarithm))), None
)


def gamma_numbers(name: str, key: ArrayLike, a: ArrayLike, shape: tuple[int, ...], dtype: DType) -> Value:
    """The draws of `gamma`, for the function `name`, in float32 or float64."""
    scale, cube, log_boost = _standard_gamma(key, a, shape, dtype)
    number = lnp.multiply(lnp.multiply(scale, cube), lnp.exp(log_boost))
    followed: Value = _followed(spread_parameter(a, shape, dtype), number)
    return followed


def log_gamma_numbers(name: str, key: ArrayLike, a: ArrayLike, shape: tuple[int, ...], dtype: DType) -> Value:
    """The draws of `loggamma`, for the function `name`, in float32 or float64."""
    scale, cube, log_boost = _standard_gamma(key, a, shape, dtype)
    logarithm = lnp.add(lnp.add(lnp.log(scale), lnp.log(cube)), log_boost)
    followed: Value = _followed_by_logarithm(spread_parameter(a, shape, dtype), logarithm)
    return followed


@one_program("shape", "dtype")
def gamma(
    key: ArrayLike, a: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats from the gamma distribution of shape parameter `a` and scale 1; by default of the shape of `a`.

    0 for a = 0, NaN for a negative one. The module describes the method and the gradient.
    """
    held = floating_dtype("gamma", dtype)
    return cast(gamma_numbers("gamma", key, a, drawn_shape("gamma", shape, a), computing(held)), held)


@one_program("shape", "dtype")
def loggamma(
    key: ArrayLike, a: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """The logarithms of the numbers of `gamma`, exact even if those are too small for a float."""
    held = floating_dtype("loggamma", dtype)
    return cast(log_gamma_numbers("loggamma", key, a, drawn_shape("loggamma", shape, a), computing(held)), held)


@one_program("shape", "dtype")
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Extents | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Floats from the beta distribution of parameters `a` and `b`, by default of their common shape.

    NaN where a parameter is negative or both are 0.
    """
    held = floating_dtype("beta", dtype)
    extents = drawn_shape("beta", shape, a, b)
    first, second = (
        log_gamma_numbers("beta", part, parameter, extents, computing(held))
        for part, parameter in zip(split(key), (a, b), strict=True)
    )
    return cast(_part_of_sum(first, second), held)


def _part_of_sum(first: Value, second: Value) -> Value:
    """exp(first) / (exp(first) + exp(second))."""
    return lnp.divide(1.0, lnp.add(1.0, lnp.exp(lnp.subtract(second, first))))


@one_program("shape", "dtype")
def dirichlet(
    key: ArrayLike, alpha: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Floats from the Dirichlet distribution, which sum to 1 along the last axis, that of the parameters `alpha`.

    `shape` is that of the result without that axis; `alpha` must broadcast to it, and determines the default. Raises
    ShapeError if `alpha` has no axis.
    """
    held = floating_dtype("dirichlet", dtype)
    parameters = as_operand(alpha).shape
    if not parameters:
        raise shape_error("dirichlet: alpha must have at least one axis, along which the numbers sum to 1")
    batch = parameters[:-1] if shape is None else checked_shape("dirichlet", shape)
    extents = drawn_shape("dirichlet", (*batch, parameters[-1]), alpha)
    logs = log_gamma_numbers("dirichlet", key, alpha, extents, computing(held))
    numbers = lnp.exp(lnp.subtract(logs, lnp.max(logs, axis=-1, keepdims=True)))
    return cast(lnp.divide(numbers, lnp.sum(numbers, axis=-1, keepdims=True)), held)
