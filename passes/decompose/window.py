"""Convolutions as dots of windows: the windows are the left operand read at other places, so nothing is copied."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.builder import broadcast, dot, pad, precision_of, shear, slice_


def _widened(node: Node) -> Node:
    """The left operand with zeros between and around its elements, or cut."""
    left, axes = node.operands[0], node.attrs["window"][0]
    low, high, interior = ([0] * left.type.rank for _ in range(3))
    for axis, *widths in zip(axes, *(node.attrs[name] for name in ("low", "high", "interior")), strict=True):
        low[axis], high[axis], interior[axis] = widths
    if any((*low, *high, *interior)):
        before, after = ([max(width, 0) for width in widths] for widths in (low, high))
        left = pad(left, before, after, interior, 0.0 if left.dtype.is_float else 0)
    if min((*low, *high, 0)) < 0:
        start = [max(-width, 0) for width in low]
        limit = [extent - max(-width, 0) for extent, width in zip(left.shape, high, strict=True)]
        left = slice_(left, start, limit, [1] * len(start))
    return left


def _windows(node: Node) -> Node:
    """The left operand's windows: its own axes, along the window's those of the result, then the window's elements."""
    left, right = _widened(node), node.operands[1]
    of_left, of_right = node.attrs["window"]
    rank = left.type.rank
    repeated = broadcast(left, (*left.shape, *(right.shape[axis] for axis in of_right)), range(rank))
    kept = free_axes(left.type, *_sides(node, 0))
    extents = dict(enumerate(left.shape)) | dict(zip(kept, node.shape[len(node.attrs["batch"][0]) :], strict=False))
    shape = (*(extents[axis] for axis in range(rank)), *repeated.shape[rank:])
    along = range(rank, rank + len(of_left))
    return shear(repeated, shape, of_left, along, node.attrs["stride"], node.attrs["dilation"])


def _sides(node: Node, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return node.attrs["batch"][side], node.attrs["contract"][side]


def convolution_as_dot(node: Node) -> tuple[Node, tuple[int, ...]]:
    """A dot of the windows and the right operand, and in what order its axes are those of the convolution.

    The windows are the dot's right operand where neighbours in memory are neighbours along a window's axis, and its
    left one where they are channels: so columns of the result lie side by side in the operand they come from. What is
    summed goes in the order in which the dot's left operand lies in memory.
    """
    left, right = node.operands
    of_left, of_right = node.attrs["window"]
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    rounding = precision_of(node)
    windows, elements = _windows(node), range(left.type.rank, left.type.rank + len(of_left))
    by_left = zip((*left_sum, *of_left), (*left_sum, *elements), (*right_sum, *of_right), strict=True)
    if left.type.rank - 1 not in of_left:
        met = [(axis, other) for _, axis, other in sorted(by_left)]
        contract = tuple(axis for axis, _ in met), tuple(other for _, other in met)
        return dot(windows, right, contract, (left_batch, right_batch), **rounding), tuple(range(node.type.rank))
    met = sorted((other, axis) for _, axis, other in by_left)
    contract = tuple(other for other, _ in met), tuple(axis for _, axis in met)
    product = dot(right, windows, contract, (right_batch, left_batch), **rounding)
    batch, kept = len(left_batch), len(free_axes(left.type, left_batch, left_sum))
    count = node.type.rank - batch - kept  # of the right operand's free axes, which stand before those of the windows
    return product, (*range(batch), *range(batch + count, node.type.rank), *range(batch, batch + count))
