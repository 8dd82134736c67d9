"""Products of many very small matrices, written out: a map, which computes four neighbours of the result at once.

As a contraction each matrix has a tile of its own, whose elements are stored one by one.
"""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    add_to,
    broadcast,
    free_axes_of,
    multiply,
    reshaped,
    slice_along,
    transposed,
)
from lavax.passes.build.contraction_geometry import sizes_of


@dataclass(frozen=True)
class SmallProducts:
    """The products that are written out on CPU drivers. The page on operations of CPU drivers has
    their times, "Many small matrices".
    """

    extent: int = 4  # rows, columns, and products of a sum, at most; not four of both, which are whole vectors
    elements: int = 1 << 12  # of the result, at least


SMALL_PRODUCTS = SmallProducts()


def is_written_out(node: Node) -> bool:
    """Whether a dot is one of many very small matrices, whose operands are not rounded."""
    sizes = sizes_of(node)
    largest = max(sizes.m, sizes.n, sizes.k)
    return (
        not node.attrs["precision"]
        and node.dtype.is_float
        and min(sizes.m, sizes.n) > 1
        and largest <= SMALL_PRODUCTS.extent
        and min(sizes.n, sizes.k) < SMALL_PRODUCTS.extent
        and node.type.size >= SMALL_PRODUCTS.elements
    )


def written_out(node: Node) -> Node:
    """The dot as a sum of products, one for each step of its sum."""
    batches, sums, free = node.attrs["batch"], node.attrs["contract"], free_axes_of(node)
    steps = sizes_of(node).k
    operands = []
    for operand, batch, summed, kept in zip(node.operands, batches, sums, free, strict=True):
        in_order = transposed(operand, (*batch, *kept, *summed))
        shape = tuple(operand.shape[axis] for axis in (*batch, *kept))
        operands.append(reshaped(in_order, (*shape, steps)))
    outer, rank = len(batches[0]), node.type.rank
    left_axes = tuple(range(outer + len(free[0])))
    right_axes = (*range(outer), *range(outer + len(free[0]), rank))
    total: Node | None = None
    for step in range(steps):
        parts = []
        for operand, axes in zip(operands, (left_axes, right_axes), strict=True):
            column = slice_along(operand, operand.type.rank - 1, step, step + 1)
            parts.append(broadcast(reshaped(column, operand.shape[:-1]), node.shape, axes))
        total = add_to(total, multiply(*parts))
    assert total is not None, "a sum has products"
    return total
