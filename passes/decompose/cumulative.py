"""Long cumulative operations by chunks: each chunk by itself, then the chunks' totals, then both joined."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lavax.ir.graph import Node
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

# A chunk is what one subgroup goes along; with so many lines every invocation has one of its own.
_CHUNK, _MANY_LINES = 1 << 10, 1 << 12


@dataclass(frozen=True)
class _Fold:
    """How two partial results are joined, and what joins without effect, by kind of dtype."""

    join: Callable[[Node, Node], Node]
    identity: dict[str, float | int]


def _join_logarithms(x: Node, y: Node) -> Node:
    """log(exp(x) + exp(y)); two equal infinities have no distance."""
    distance = where(equal(x, y), zeros(x.type), absolute(subtract(x, y)))
    return add(maximum(x, y), build("log1p", exp(negate(distance))))


_LOWEST: dict[str, float | int] = {"float": float("-inf"), "int": -(1 << 31), "uint": 0}
_HIGHEST: dict[str, float | int] = {"float": float("inf"), "int": (1 << 31) - 1, "uint": (1 << 32) - 1}
_FOLDS: dict[str, _Fold] = {
    "cumulative_sum": _Fold(add, {"float": 0.0, "int": 0, "uint": 0}),
    "cumulative_prod": _Fold(multiply, {"float": 1.0, "int": 1, "uint": 1}),
    "cumulative_max": _Fold(maximum, _LOWEST),
    "cumulative_min": _Fold(minimum, _HIGHEST),
    "cumulative_logsumexp": _Fold(_join_logarithms, _LOWEST),
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
    if length <= _CHUNK or x.type.size // length >= _MANY_LINES:
        return node
    identity = fold.identity[x.dtype.kind]
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
