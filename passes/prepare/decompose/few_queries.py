"""Attention of a few queries, such as that of a new token to a cache.

One kernel computes it where lanes can share a key evenly: a workgroup per query and part of the keys, the last of
which joins the parts.

Else it is two kernels over rows. A kernel of attention for many queries has a workgroup per few of them, which is one
per head here: the device would wait for a handful of workgroups that walk over all keys. Instead each score is a row of
its own, and then each element of the result, which adds up the weights beside what they multiply; the weights are cheap
to compute again for each element of a value. Many keys are taken in parts, which a third kernel joins (Dao et al.,
"Flash-Decoding for long-context inference", 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.attention import named_operands, visible
from lavax.passes.build.builder import (
    add,
    broadcast,
    broadcast_back,
    build,
    cast,
    divide,
    equal,
    exp,
    multiply,
    reduce,
    reshape,
    scale,
    splat,
    subtract,
    sum_over,
    where,
    zeros,
)
from lavax.passes.prepare.decompose.attention import RULES as ATTENTION
from lavax.passes.prepare.decompose.unwritten_rows import read_before_writing
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class FewQueries:
    """How many keys a row goes over. Exercised by `python -m benchmarks models` (decoding)."""

    keys: int = 1024  # up to so many are one part
    part: int = 1024  # and more are in parts of about so many


FEW_QUERIES = FewQueries()


def prepare_attention(node: Node, target: Target) -> Node:
    """Attention in the form that the device prefers for so few queries."""
    if target.attention.in_one_kernel(node):
        return in_one_kernel(node)
    return by_rows(node) if target.attention.by_rows(node) else ATTENTION["attention"](node)


def in_one_kernel(node: Node) -> Node:
    """The same by one kernel, which reads a cache's new row where it is made."""
    operands = named_operands(node)
    operands |= {name: read_before_writing(operands[name]) for name in ("key", "value")}
    return build("attention", *operands.values(), **node.attrs)


def by_rows(node: Node) -> Node:
    """The result of an `attention` node of any number of queries and keys."""
    operands = named_operands(node)
    scores = _scores(node, operands | {"key": read_before_writing(operands["key"])})
    parts = _parts(scores.shape[-1])
    peaks, totals, mixed = _mixed(scores, read_before_writing(operands["value"]), parts)
    along = (scores.type.rank - 1,)  # of the parts
    if parts == 1:
        kept = (*scores.shape[:-1], mixed.shape[-1])
        total, found = reshape(totals, kept), reshape(mixed, kept)
    else:
        shares = exp(subtract(peaks, broadcast_back(_finite(reduce("max", peaks, along)), peaks.shape, along)))
        total, found = (sum_over(multiply(shares, each), along) for each in (totals, mixed))
    if node.attrs["empty"]:
        total = where(equal(total, zeros(total.type)), splat(1.0, total.type), total)
    result = divide(found, total)
    return result if result.dtype == node.dtype else cast(result, node.dtype)


def _parts(keys: int) -> int:
    """The number of parts that keys are taken in: a divisor, so that they are equal."""
    if keys <= FEW_QUERIES.keys:
        return 1
    return next((parts for parts in range(keys // FEW_QUERIES.part, 1, -1) if keys % parts == 0), 1)


def _scores(node: Node, operands: Mapping[str, Node]) -> Node:
    """All scores [..., queries, keys], those of hidden keys `fill`."""
    rank = node.type.rank
    query, key = operands["query"], operands["key"]
    *batch, queries, head = query.shape
    shape = (*batch, queries, key.shape[-2], head)
    first = tuple(range(rank - 2))
    left = broadcast(query, shape, (*first, rank - 2, rank))
    right = broadcast(key, shape, (*first, rank - 1, rank))
    found = scale(sum_over(multiply(right, left), (rank,)), node.attrs["scale"])
    if "bias" in operands:
        found = add(found, operands["bias"])
    seen = visible(node, found.shape)
    return found if seen is None else where(seen, found, splat(node.attrs["fill"], found.type))


def _mixed(scores: Node, value: Node, parts: int) -> tuple[Node, Node, Node]:
    """Of each part and element of a value: the greatest score, the sum of the weights relative to it, and that of the
    weights times values; [..., queries, parts, elements]."""
    *batch, queries, keys = scores.shape
    count, each, elements = len(batch), keys // parts, value.shape[-1]
    shape = (*batch, queries, parts, each, elements)
    first = tuple(range(count))
    parted = reshape(scores, shape[:-1])
    repeated = broadcast(parted, shape, range(count + 3))
    values = broadcast(reshape(value, (*batch, parts, each, elements)), shape, (*first, *range(count + 1, count + 4)))
    along = (count + 2,)
    peaks = reduce("max", repeated, along)
    weights = build("exp", subtract(repeated, broadcast_back(_finite(peaks), shape, along)), nonpositive=True)
    weighted = where(equal(weights, zeros(weights.type)), zeros(weights.type), multiply(weights, values))
    return peaks, sum_over(weights, along), sum_over(weighted, along)


def _finite(peak: Node) -> Node:
    """0 in place of the greatest of no scores: what is subtracted from scores must not be infinite."""
    return where(equal(peak, splat(-inf, peak.type)), zeros(peak.type), peak)


