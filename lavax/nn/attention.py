"""Attention."""
from __future__ import annotations

import math
from typing import NamedTuple

from lavax.ir.types import TensorType, bool_, int32
from lavax.numpy._core.broadcasting import spread
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.number_arguments import real_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.shape_arguments import as_shape
from lavax.numpy.arrays.creation import iota
from lavax.numpy.elementwise.comparison import less, logical_and
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["dot_product_attention", "scaled_dot_product_attention"]

_NAME = "dot_product_attention"


class _Extents(NamedTuple):
    batch: int
    queries: int
    keys: int
    heads: int
    groups: int  # query heads that share a head of keys and values
    head: int

    @property
    def scores(self) -> tuple[int, ...]:
        return (self.batch, self.heads * self.groups, self.queries, self.keys)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    implementation: str | None = None,
    local_window_size: int | tuple[int, int] | None = None,
) -> Value:
    """softmax(scale · query·keyᵀ + bias, over the visible keys)·value, in memory linear in the sequence.

    `query` is [B, T, N, H], `key` [B, S, K, H] and `value` [B, S, K, E], of one floating dtype, and the result [B, T,
    N, E]; all three may lack B. N is a multiple of K: query head n reads head n // (N / K). `bias` and the boolean
    `mask` broadcast to [B, N, T, S]. `scale` is 1 / sqrt(H) by default. A key is visible to a query if all of these
    hold: `mask` is true; with `is_causal`, the key is not after the query; with `local_window_size` (left, right), or
    one number for both, the key is at most `left` positions before the query and `right` after it; with
    `query_seq_lengths` and `key_value_seq_lengths` [B], the positions of query and key are below these lengths. The
    result for a query without visible keys is 0. `implementation` changes nothing. Raises ShapeError if shapes do not
    fit, DtypeError if dtypes do not.
    """
    values = [as_value(x) for x in (query, key, value)]
    _check_dtypes(values)
    ranks = {x.ndim for x in values}
    if ranks not in ({3}, {4}):
        raise shape_error(f"{_NAME}: query, key and value have 4 axes, or 3 without a batch, got {_types(values)}")
    batched = [x if x.ndim == 4 else reshaped(x, (1, *x.shape)) for x in values]
    extents = _extents(batched)
    visible = _visible(mask, query_seq_lengths, key_value_seq_lengths, extents)
    lowest, highest = _window(local_window_size, is_causal, extents)
    more = []
    if bias is not None:
        more.append(_of_scores("bias", cast(as_value(bias), values[0].type.dtype), extents))
    if visible is not None:
        more.append(visible)
    result = bind(
        "attention",
        _by_head(batched[0], extents, grouped=True),
        *(_by_head(x, extents, grouped=False) for x in batched[1:]),
        *more,
        scale=1 / math.sqrt(extents.head) if scale is None else real_number(f"{_NAME}: scale", scale),
        fill=-math.inf,
        lowest=lowest,
        highest=highest,
        biased=bias is not None,
        masked=visible is not None,
        empty=True,
    )
    by_head = reshaped(result, (extents.batch, extents.heads * extents.groups, *result.shape[-2:]))
    found = transposed(by_head, (0, 2, 1, 3))
    return found if ranks == {4} else reshaped(found, found.shape[1:])


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """`dot_product_attention` in PyTorch's order of axes: [..., heads, T, H], or [..., T, H] for one head.

    `attn_mask` broadcasts to [..., heads, T, S]: truth values say which keys are visible, floats are added to scores.
    With `enable_gqa` keys and values may have fewer heads than queries. Raises ShapeError or DtypeError for arguments
    that do not fit.
    """
    given = [as_value(x) for x in (query, key, value)]
    ranks = {x.ndim for x in given}
    batch = given[0].shape[:-3]
    if len(ranks) != 1 or ranks.pop() < 2 or any(x.shape[:-3] != batch for x in given):
        raise shape_error(f"scaled_{_NAME}: query, key and value are [..., heads, T, H], got {_types(given)}")
    if not enable_gqa and len({x.shape[-3:-2] for x in given}) > 1:
        raise shape_error(f"scaled_{_NAME}: for heads that share keys say enable_gqa=True, got {_types(given)}")
    heads = [x.shape[-3] if x.ndim > 2 else 1 for x in given]
    moved = [
        transposed(reshaped(x, (math.prod(batch), count, *x.shape[-2:])), (0, 2, 1, 3))
        for x, count in zip(given, heads, strict=True)
    ]
    bias = mask = None
    if attn_mask is not None:
        shown = _by_batch(as_value(attn_mask), batch, (heads[0], given[0].shape[-2], given[1].shape[-2]))
        bias, mask = (None, shown) if shown.type.dtype == bool_ else (shown, None)
    made = dot_product_attention(moved[0], moved[1], moved[2], bias, mask, scale=scale, is_causal=is_causal)
    return reshaped(transposed(made, (0, 2, 1, 3)), (*given[0].shape[:-1], given[2].shape[-1]))


def _by_batch(mask: Value, batch: tuple[int, ...], scores: tuple[int, ...]) -> Value:
    """A mask with one leading axis in place of those of `batch`; missing axes have extent 1."""
    if mask.ndim <= 3 or len(batch) == 1:
        return mask
    if mask.ndim != len(batch) + 3:
        raise shape_error(f"scaled_{_NAME}: attn_mask broadcasts to {[*batch, *scores]}, got {mask.type}")
    own = spread(mask, (*batch, *mask.shape[-3:]))
    return reshaped(own, (math.prod(batch), *mask.shape[-3:]))


def _types(values: list[Value]) -> str:
    return ", ".join(str(x.type) for x in values)


def _check_dtypes(values: list[Value]) -> None:
    dtypes = {x.type.dtype for x in values}
    if len(dtypes) != 1 or not dtypes.pop().is_float:
        raise dtype_error(f"{_NAME}: query, key and value must have one floating dtype, got {_types(values)}")


def _extents(values: list[Value]) -> _Extents:
    query, key, value = values
    batch, queries, query_heads, head = query.shape
    _, keys, heads, _ = key.shape
    if key.shape != (batch, keys, heads, head) or value.shape[:-1] != (batch, keys, heads):
        raise shape_error(f"{_NAME}: query [B, T, N, H], key [B, S, K, H] and value [B, S, K, E], got {_types(values)}")
    if not heads or query_heads % heads:
        raise shape_error(f"{_NAME}: {query_heads} query heads cannot share {heads} heads of keys: N must divide by K")
    if not keys or not head:
        raise shape_error(f"{_NAME}: there must be a key, and an element in a head, got {_types(values)}")
    return _Extents(batch, queries, keys, heads, query_heads // heads, head)


def _by_head(x: Value, extents: _Extents, grouped: bool) -> Value:
    """[B, heads, groups, sequence, head]; heads of keys and values are repeated for each head of a group."""
    batch, length, _, last = x.shape
    if grouped:
        return transposed(reshaped(x, (batch, length, extents.heads, extents.groups, last)), (0, 2, 3, 1, 4))
    alone = reshaped(transposed(x, (0, 2, 1, 3)), (batch, extents.heads, 1, length, last))
    return spread(alone, (batch, extents.heads, extents.groups, length, last))


def _of_scores(name: str, x: Value, extents: _Extents) -> Value:
    """An operand that broadcasts to the scores [B, N, T, S], as [B, heads, groups, T, S]."""
    shape = extents.scores
    padded = (1,) * (4 - x.ndim) + x.shape
    if x.ndim > 4 or any(extent not in (1, whole) for extent, whole in zip(padded, shape, strict=True)):
        raise shape_error(f"{_NAME}: the {name} {x.type} does not broadcast to [B, N, T, S], here {list(shape)}")
    heads = (extents.heads, extents.groups) if padded[1] != 1 else (1, 1)
    spaced = reshaped(x, (padded[0], *heads, *padded[2:]))
    return spread(spaced, (extents.batch, extents.heads, extents.groups, extents.queries, extents.keys))


def _visible(
    mask: ArrayLike | None, query_lengths: ArrayLike | None, key_lengths: ArrayLike | None, extents: _Extents
) -> Value | None:
    """The keys that masks and lengths leave visible; None: all."""
    parts = []
    if mask is not None:
        given = as_value(mask)
        if given.type.dtype != bool_:
            raise dtype_error(f"{_NAME}: the mask must be bool, got {given.type}; numbers to add are a bias")
        parts.append(_of_scores("mask", given, extents))
    lengths = (("query_seq_lengths", query_lengths, 2), ("key_value_seq_lengths", key_lengths, 3))
    for name, length, axis in lengths:
        if length is not None:
            parts.append(_of_scores(name, _below(name, as_value(length), axis, extents), extents))
    found = None
    for part in parts:
        found = part if found is None else logical_and(found, part)
    return found


def _below(name: str, lengths: Value, axis: int, extents: _Extents) -> Value:
    if not lengths.type.dtype.is_integer:
        raise dtype_error(f"{_NAME}: {name} must be integers, got {lengths.type}")
    if lengths.shape != (extents.batch,):
        raise shape_error(f"{_NAME}: {name} must have the shape [{extents.batch}], got {lengths.type}")
    shape = [extents.batch, 1, 1, 1]
    shape[axis] = extents.scores[axis]
    places = iota(TensorType(tuple(shape), int32), axis)
    return less(places, spread(reshaped(cast(lengths, int32), (extents.batch, 1, 1, 1)), tuple(shape)))


def _window(size: int | tuple[int, int] | None, is_causal: bool, extents: _Extents) -> tuple[int, int]:
    """The least and the greatest distance from a query to a key."""
    lowest, highest = 1 - extents.queries, extents.keys - 1
    if size is not None:
        left, right = as_shape((size, size) if isinstance(size, int) else size, f"{_NAME}: local_window_size")
        if left < 0 or right < 0:
            raise ValueError(f"{_NAME}: local_window_size {size} must not be negative")
        lowest, highest = max(lowest, -left), min(highest, right)
    return lowest, min(highest, 0) if is_causal else highest
