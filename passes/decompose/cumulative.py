"""Long cumulative operations by chunks: each chunk by itself, then the chunks' totals, then both joined."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lavax.ir.graph import Node
from lavax.ir.types import DType
from lavax.passes.builder import (
    absolute,
    add,
    broadcast,
    build,
    equal,
    exp,
    maximum,
    minimum,
    multiply,
    negate,
    pad,
    reshape,
    slice_along,
    subtract,
    where,
    zeros,
)
from lavax.passes.kernels.loop_limit import MOST_TURNS

# A chunk is what one subgroup goes along; with so many lines every invocation has one of its own.
_CHUNK, _MANY_LINES = 1 << 10, 1 << 12


@dataclass(frozen=True)
class _Fold:
    """How two partial results are joined, and what joins without effect, by dtype."""

    join: Callable[[Node, Node], Node]
    identity: Callable[[DType], float | int]


def _join_logarithms(x: Node, y: Node) -> Node:
    """log(exp(x) + exp(y)); two equal infinities have no distance."""
    distance = where(equal(x, y), zeros(x.type), absolute(subtract(x, y)))
    return add(maximum(x, y), build("log1p", exp(negate(distance))))


_FOLDS: dict[str, _Fold] = {
    "cumulative_sum": _Fold(add, lambda dtype: dtype.number(0)),
    "cumulative_prod": _Fold(multiply, lambda dtype: dtype.number(1)),
    "cumulative_max": _Fold(maximum, lambda dtype: dtype.lowest),
    "cumulative_min": _Fold(minimum, lambda dtype: dtype.highest),
    "cumulative_logsumexp": _Fold(_join_logarithms, lambda dtype: dtype.lowest),
}


def _padded(x: Node, axis: int, before: int, after: int, value: float | int) -> Node:
    if not before and not after:
        return x
    rank = x.type.rank
    low, high = ([width if d == axis else 0 for d in range(rank)] for width in (before, after))
    return pad(x, low, high, [0] * rank, value)


def _cumulative(node: Node) -> Node:
    (x,) = node.operands
    axis, fold = node.attrs["axis"], _FOLDS[node.op]
    length = x.shape[axis]
    if length <= _CHUNK or (x.type.size // length >= _MANY_LINES and length <= MOST_TURNS):
        return node
    identity = fold.identity(x.dtype)
    parts = -(-length // _CHUNK)
    whole = _padded(x, axis, 0, parts * _CHUNK - length, identity)
    split = (*x.shape[:axis], parts, _CHUNK, *x.shape[axis + 1 :])
    local = build(node.op, reshape(whole, split), axis=axis + 1)
    last = reshape(slice_along(local, axis + 1, _CHUNK - 1, _CHUNK), (*split[: axis + 1], *split[axis + 2 :]))
    totals = _cumulative(build(node.op, last, axis=axis))
    earlier = _padded(slice_along(totals, axis, 0, parts - 1), axis, 1, 0, identity)
    repeated = broadcast(earlier, split, [d for d in range(len(split)) if d != axis + 1])
    joined = reshape(fold.join(repeated, local), whole.shape)
    return joined if whole is x else slice_along(joined, axis, 0, length)


RULES: dict[str, Callable[[Node], Node]] = dict.fromkeys(_FOLDS, _cumulative)
