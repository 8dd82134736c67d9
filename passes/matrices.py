"""Stacks of matrices: the parts of what they are taken apart into, and their rows in another order."""

from __future__ import annotations

from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.linear_algebra import parts_of
from lavax.passes.builder import broadcast, gather, index_type, iota, reshape, slice_along


def part(packed: Node, op: str, matrix: Node, name: str, **attrs: bool) -> Node:
    """One part of what `op` gives for `matrix`."""
    start, shape = parts_of(op, matrix.type, attrs)[name]
    cut = slice_along(packed, packed.type.rank - 1, start, start + prod(shape))
    return reshape(cut, (*packed.shape[:-1], *shape))


def rows_in_order(x: Node, order: Node) -> Node:
    """Row i of the result is row `order`[i] of `x`, for each matrix of a stack."""
    rank = x.type.rank
    type = index_type(x.shape)
    chosen = broadcast(order, x.shape, range(rank - 1))
    places = [chosen if axis == rank - 2 else iota(type, axis) for axis in range(rank)]
    return gather(x, places, range(rank))
