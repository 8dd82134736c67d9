"""Stacks of matrices in the last two axes: products, triangles, diagonals, reordered rows, and parts of packed
decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.linear_algebra import parts_of
from lavax.passes.build.builder import (
    add,
    broadcast,
    concatenate,
    divide,
    dot,
    equal,
    gather,
    greater_equal,
    index_type,
    iota,
    reshape,
    slice_along,
    splat,
    transpose,
    where,
    zeros,
)


def part(packed: Node, op: str, matrix: Node, name: str, **attrs: bool) -> Node:
    """One part of the packed result of `op` for `matrix`."""
    start, shape = parts_of(op, matrix.type, attrs)[name]
    cut = slice_along(packed, packed.type.rank - 1, start, start + prod(shape))
    return reshape(cut, (*packed.shape[:-1], *shape))


def rows_in_order(x: Node, order: Node) -> Node:
    """Row i of the result is row `order[i]` of `x`, in each matrix of the stack."""
    rank = x.type.rank
    type = index_type(x.shape)
    chosen = broadcast(order, x.shape, range(rank - 1))
    indices = [chosen if axis == rank - 2 else iota(type, axis) for axis in range(rank)]
    return gather(x, indices, range(rank))


def turned(x: Node) -> Node:
    """Each matrix transposed."""
    rank = x.type.rank
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def product(*matrices: Node) -> Node:
    """The matrix product, from left to right."""
    result = matrices[0]
    for other in matrices[1:]:
        rank = result.type.rank
        stack = tuple(range(rank - 2))
        result = dot(result, other, ((rank - 1,), (rank - 2,)), (stack, stack))
    return result


def lower(x: Node, offset: int = 0) -> Node:
    """The elements on and below the diagonal; with an offset of -1 those below."""
    return where(is_lower(x, offset), x, zeros(x.type))


def is_lower(x: Node, offset: int = 0) -> Node:
    type, rank = index_type(x.shape), x.type.rank
    return greater_equal(iota(type, rank - 2), add(iota(type, rank - 1), splat(-offset, type)))


def upper(x: Node) -> Node:
    """The elements on and above the diagonal."""
    return where(is_lower(x, -1), zeros(x.type), x)


def by_row(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcasts one number per row."""
    return broadcast(x, shape, range(len(shape) - 1))


def by_column(x: Node, shape: tuple[int, ...]) -> Node:
    """Broadcasts one number per column."""
    rank = len(shape)
    return broadcast(x, shape, (*range(rank - 2), rank - 1))


def on_diagonal(x: Node, shape: tuple[int, ...]) -> Node:
    rows, type = by_row(x, shape), index_type(shape)
    is_diagonal = equal(iota(type, len(shape) - 2), iota(type, len(shape) - 1))
    return where(is_diagonal, rows, zeros(rows.type))


def inverse_or_zero(x: Node) -> Node:
    is_zero = equal(x, zeros(x.type))
    return where(is_zero, zeros(x.type), divide(splat(1, x.type), where(is_zero, splat(1, x.type), x)))


def rows_of(x: Node, start: int, limit: int) -> Node:
    return slice_along(x, x.type.rank - 2, start, limit)


def columns_of(x: Node, start: int, limit: int) -> Node:
    return slice_along(x, x.type.rank - 1, start, limit)


def packed(parts: Sequence[Node], batch: int) -> Node:
    """The parts flattened and concatenated in one axis after the first `batch` axes."""
    stack = parts[0].shape[:batch]
    return concatenate([reshape(each, (*stack, prod(each.shape[batch:]))) for each in parts], batch)
