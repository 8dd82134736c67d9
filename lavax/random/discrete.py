"""Discrete distributions that take a fixed number of draws per element."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import DType, TensorType, int32, uint32, uint64
from lavax.numpy._core.application import apply, real_numbers
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import common_shape, fit
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, Operand, as_operand, as_value, cast
from lavax.numpy._core.promotion import floating
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.sorting.sorting import argsort
from lavax.random.bits import drawn_bits
from lavax.random.continuous import FORMATS, require_mode, standard_gumbel, uniform_between
from lavax.random.keys import split
from lavax.random.parameters import drawn_shape, integer_dtype, spread_parameter
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

Extents = int | Sequence[int]


@one_program("shape", "mode")
def bernoulli(
    key: ArrayLike, p: ArrayLike = 0.5, shape: Extents | None = None, mode: str = "low", *, out_sharding: Any = None
) -> Value:
    """Truth values, true with probability `p`, by default of the shape of `p`; drawn in the dtype of `p`.

    With `mode` "high" two draws each have the precision of small probabilities. Raises ValueError for another mode,
    DtypeError for complex `p`.
    """
    require_mode("bernoulli", mode)
    real_numbers("bernoulli", p)
    extents = drawn_shape("bernoulli", shape, p)
    held = floating(as_operand(p).type.dtype)
    if mode == "high":
        draws = uniform_between("bernoulli", key, (2, *extents), dtype=held)
        rest = lnp.subtract(spread_parameter(p, extents, held), draws[0])
        return lnp.less(lnp.multiply(draws[1], FORMATS[held].eps), rest)
    u = uniform_between("bernoulli", key, extents, dtype=held)
    return lnp.less(u, spread_parameter(p, extents, held))


@one_program("shape", "dtype")
def rademacher(key: ArrayLike, shape: Extents = (), dtype: Any = None, *, out_sharding: Any = None) -> Value:
    """-1 or 1 with equal probability, in any `dtype` of numbers."""
    held = default_integer() if dtype is None else canonical_dtype(dtype)
    signs = cast(bernoulli(key, 0.5, checked_shape("rademacher", shape)), int32)
    return cast(lnp.subtract(lnp.multiply(signs, 2), 1), held)


@one_program("shape", "dtype")
def geometric(
    key: ArrayLike, p: ArrayLike, shape: Extents | None = None, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """The number of trials, each with probability `p`, up to the first success: integers from 1 on.

    The default shape is that of `p`.
    """
    held = integer_dtype("geometric", dtype)
    extents = drawn_shape("geometric", shape, p)
    kind = floating(as_operand(p).type.dtype)
    u = uniform_between("geometric", key, extents, dtype=kind)
    logarithm = lnp.log(lnp.where(lnp.equal(u, 0), 1.0, u))
    failure = lnp.log1p(lnp.negative(spread_parameter(p, extents, kind)))
    return cast(lnp.add(lnp.floor(lnp.divide(logarithm, failure)), 1.0), held)


def randint(
    key: ArrayLike, shape: Extents, minval: ArrayLike, maxval: ArrayLike, dtype: Any = None, *, out_sharding: Any = None
) -> Value:
    """Integers of `shape` in [minval, maxval), to which arrays broadcast; minval if the range is empty.

    Bounds that are floats are truncated; those that no `dtype` of 32 and 64 bits holds stand for the nearest that it
    has, and NaN for 0, as where floats become integers. False is 0, and True is 1.

    Integers that a `dtype` of 8 or 16 bits does not hold stand for the nearest that it can have. A Python `maxval` may
    be one beyond the greatest number of any `dtype`.

    In a range of n numbers their probabilities differ from 1/n by less than one in 2^32 / n (up to 2^16 numbers: in
    2^48); in 64 bits by less than one in 2^64 / n. Raises DtypeError for bounds that are no numbers, or that a
    `dtype` of 32 and 64 bits does not hold.
    """
    held = integer_dtype("randint", dtype)
    extents = drawn_shape("randint", shape, minval, maxval)
    minval, maxval = _truncated(minval, held), _truncated(maxval, held)
    last = int(np.iinfo(held.numpy).max)
    whole = isinstance(maxval, int) and maxval == last + 1 and held.bits >= 32
    low, high = _bounds(minval, last if whole else maxval, held)
    return _integers(key, low, high, extents, held, whole)


@one_program("shape", "dtype", "whole")
def _integers(key: ArrayLike, low: Value, high: Value, shape: tuple[int, ...], dtype: DType, whole: bool) -> Value:
    """Integers in [low, high), or [low, high] if that is all numbers of the dtype from `low` on."""
    unsigned = uint64 if dtype.bits == 64 else uint32
    least = cast(low, unsigned)
    count = lnp.subtract(cast(high, unsigned), least)
    # If the range holds all numbers of the dtype, the count wraps to 0, and a remainder by 0 leaves numbers unchanged.
    count = lnp.add(count, 1) if whole else lnp.where(lnp.less(low, high), count, 1)
    offset = _below(key, shape, count)
    return cast(cast(lnp.add(least, offset), low.type.dtype), dtype)


def _below(key: ArrayLike, shape: tuple[int, ...], count: Value) -> Value:
    """Numbers of `shape` below `count`: the remainder of an integer of twice the bits, made of two draws."""
    dtype = count.type.dtype
    high, low = (drawn_bits("randint", part, shape, dtype) for part in split(key))
    half = apply("remainder", 2 ** (dtype.bits // 2), count)
    weight = apply("remainder", lnp.multiply(half, half), count)
    total = lnp.add(lnp.multiply(apply("remainder", high, count), weight), apply("remainder", low, count))
    return apply("remainder", total, count)


def _bounds(minval: ArrayLike, maxval: ArrayLike, held: DType) -> tuple[Value, Value]:
    """The bounds in their common shape, in the dtype of the result or in int32."""
    bounds = {"minval": minval, "maxval": maxval}
    if held.bits < 32:
        bounds = {name: _within(name, bound, held) for name, bound in bounds.items()}
    operands = [_bound(name, bound) for name, bound in bounds.items()]
    shape = common_shape("randint", operands)
    low, high = (fit(operand, TensorType(shape, held if held.bits >= 32 else int32)) for operand in operands)
    return low, high


def _truncated(bound: ArrayLike, held: DType) -> ArrayLike:
    """Floats as the integers between 0 and them, and bools as numbers; other bounds as they are."""
    wide = held if held.bits >= 32 else int32
    if isinstance(bound, (float, np.floating)):
        return 0 if np.isnan(bound) else int(min(max(float(bound), int(wide.lowest)), int(wide.highest)))
    if isinstance(bound, (bool, np.bool_)):
        return int(bound)
    dtype = as_operand(bound).type.dtype
    return bound if dtype.is_integer or dtype.is_complex else cast(as_value(bound), wide)


def _within(name: str, bound: ArrayLike, held: DType) -> ArrayLike:
    """The bound, or the nearest that a dtype of few bits can have."""
    least, most = int(held.lowest), int(held.highest) + (name == "maxval")
    if isinstance(bound, int):
        return min(max(bound, least), most)
    value = as_value(bound)
    if not value.type.dtype.is_integer:
        return value  # `_bound` refuses it
    if value.type.dtype.bits < 32:
        value = cast(value, int32)
    return lnp.clip(value, max(least, int(value.type.dtype.lowest)), most)


def _bound(argument: str, bound: ArrayLike) -> Operand:
    operand = as_operand(bound)
    if not operand.type.dtype.is_integer:
        raise dtype_error(f"randint: {argument} must be an integer, got {operand.type}")
    return operand


@one_program("axis", "shape", "replace", "mode")
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Extents | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Positions along `axis` of `logits`, each with a probability proportional to exp(logit), as integers.

    `shape` ends in the shape of `logits` without `axis`, which is the default; axes before that are for more draws.
    With `replace` False these draws are without replacement, and at most as many as categories. `mode` is as in
    `gumbel`. Raises ShapeError if the shape does not fit or there are too many draws, DtypeError for
    complex `logits`.
    """
    scores = real_numbers("categorical", logits)
    along = normal_axis("categorical", axis, scores.type)
    batch = scores.shape[:along] + scores.shape[along + 1 :]
    extents = batch if shape is None else checked_shape("categorical", shape)
    draws = extents[: max(len(extents) - len(batch), 0)]
    kept = extents[len(draws) :]
    if not replace:
        return _without_replacement(key, scores, along, draws, kept == batch, mode)
    drawn_shape("categorical", extents, lnp.empty(batch))
    shape = (*draws, *kept[:along], scores.shape[along], *kept[along:])
    noise = standard_gumbel("categorical", key, shape, scores.type.dtype, mode)
    return lnp.argmax(lnp.add(noise, scores), axis=len(draws) + along)


def _without_replacement(
    key: ArrayLike, scores: Value, axis: int, draws: tuple[int, ...], fits: bool, mode: str | None
) -> Value:
    """The positions of the greatest noisy scores, in falling order."""
    count, categories = math.prod(draws), scores.shape[axis]
    if not fits or count > categories:
        raise shape_error(
            f"categorical: draws {draws} without replacement from {scores.type} along axis {axis}: there are "
            f"{categories} categories, and shape must end in the shape of logits without that axis"
        )
    noisy = lnp.add(standard_gumbel("categorical", key, scores.shape, scores.type.dtype, mode), scores)
    order = lnp.moveaxis(argsort(lnp.negative(noisy), axis=axis, dtype=int32), axis, 0)[:count]
    return lnp.reshape(order, (*draws, *order.shape[1:]))
