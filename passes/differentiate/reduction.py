"""Gradients of reductions."""
from __future__ import annotations

from math import nan, prod

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    broadcast,
    broadcast_back,
    cast,
    divide,
    equal,
    flip,
    greater,
    less,
    logical_not,
    multiply,
    pad,
    reshape,
    slice_along,
    splat,
    sum_over,
    transpose,
    where,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand


def _sum(node: Node, g: Node) -> Node:
    return broadcast_back(g, node.operands[0].shape, node.attrs["axes"])


def _extremum(node: Node, g: Node) -> Node:
    """Elements that are equal to the extremum share its gradient equally. Where it is NaN, so are all gradients."""
    (x,) = node.operands
    axes = node.attrs["axes"]
    tied = reaches(x, node, broadcast_back(node, x.shape, axes))
    share = share_of(node, g, sum_over(cast(tied, g.dtype), axes))
    return where(tied, broadcast_back(share, x.shape, axes), zeros(x.type))


def reaches(x: Node, node: Node, extremum: Node) -> Node:
    """Where `x` is not short of its `extremum`, which `node` computes: everywhere if that is NaN."""
    return logical_not(less(x, extremum) if node.op.endswith("max") else greater(x, extremum))


def share_of(extremum: Node, g: Node, count: Node) -> Node:
    """The share of each of `count` elements in the gradient of their extremum: NaN if that is."""
    return divide(g, where(equal(extremum, extremum), count, splat(nan, count.type)))


def _product_of_others(rows: Node) -> Node:
    """For each element of a row of f32[rows,n], the product of the row's other elements.

    Goes up a tree of products over pairs, and down again: multiplies the product outside a pair by the other half of
    the pair. There is no division, so zeros are no special case in derivatives of any order. Work is linear in n.
    """
    count, length = rows.shape
    levels = max(length - 1, 0).bit_length()
    padded = pad(rows, (0, 0), (0, (1 << levels) - length), (0, 0), rows.dtype.number(1))
    pairs = []
    for level in reversed(range(levels)):
        pairs.append(reshape(padded, (count, 1 << level, 2)))
        first, second = (slice_along(pairs[-1], 2, half, half + 1) for half in (0, 1))
        padded = reshape(multiply(first, second), (count, 1 << level))
    outside = splat(1, padded.type)
    for pair in reversed(pairs):
        outside = multiply(broadcast(outside, pair.shape, (0, 1)), flip(pair, (2,)))
        outside = reshape(outside, (count, pair.shape[1] * 2))
    return slice_along(outside, 1, 0, length)


def _prod(node: Node, g: Node) -> Node:
    (x,) = node.operands
    if x.type.size == 0:
        return zeros(x.type)
    axes = node.attrs["axes"]
    order = [axis for axis in range(x.type.rank) if axis not in axes] + list(axes)
    moved = transpose(x, order)
    rows = reshape(moved, (node.type.size, prod(x.shape[axis] for axis in axes)))
    others = reshape(_product_of_others(rows), moved.shape)
    back = transpose(others, sorted(range(len(order)), key=order.__getitem__))
    return multiply(broadcast_back(g, x.shape, axes), back)


RULES: dict[str, GradientRule] = {
    "sum": by_operand(_sum),
    "prod": by_operand(_prod),
    "max": by_operand(_extremum),
    "min": by_operand(_extremum),
}
