"""Convolutions as dots of windows. The windows are the left operand read at other coordinates, so nothing is copied."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import broadcast, cast, dot, pad, precision_of, reshaped, shear, slice_, transpose
from lavax.passes.numerics.narrow_movement import as_stored


def widened(left: Node, axes: Sequence[int], node: Node) -> Node:
    """The left operand of a convolution, whose window has these axes of it, with zeros between and around its elements,
    or cropped."""
    low, high, interior = ([0] * left.type.rank for _ in range(3))
    for axis, *widths in zip(axes, *(node.attrs[name] for name in ("low", "high", "interior")), strict=True):
        low[axis], high[axis], interior[axis] = widths
    if any((*low, *high, *interior)):
        before, after = ([max(width, 0) for width in widths] for widths in (low, high))
        left = pad(left, before, after, interior, left.dtype.number(0))
    if min((*low, *high, 0)) < 0:
        start = [max(-width, 0) for width in low]
        limit = [extent - max(-width, 0) for extent, width in zip(left.shape, high, strict=True)]
        left = slice_(left, start, limit, [1] * len(start))
    return left


def _windows(node: Node, plain: bool) -> Node:
    """The left operand's windows: its axes, the window's with the result's extents, then the window's elements.

    If `plain`, windows of one element are a part of the operand in another shape, which an earlier kernel writes once,
    whoever else reads it. On GPUs that moves 9 % fewer bytes in a training step of ResNet-50, in 4 dispatches more of
    606, but was not measured.
    """
    left, right = widened(node.operands[0], node.attrs["window"][0], node), node.operands[1]
    of_left, of_right = node.attrs["window"]
    rank, count = left.type.rank, len(of_left)
    if plain and all(right.shape[axis] == 1 for axis in of_right):
        return _single_elements(node, left)
    repeated = broadcast(left, (*left.shape, *(right.shape[axis] for axis in of_right)), range(rank))
    kept = free_axes(left.type, *_sides(node, 0))
    extents = dict(enumerate(left.shape)) | dict(zip(kept, node.shape[len(node.attrs["batch"][0]) :], strict=False))
    shape = (*(extents[axis] for axis in range(rank)), *repeated.shape[rank:])
    along = range(rank, rank + count)
    return shear(repeated, shape, of_left, along, node.attrs["stride"], node.attrs["dilation"])


def _single_elements(node: Node, left: Node) -> Node:
    """The windows of one element each: every element that a window starts at."""
    of_left = node.attrs["window"][0]
    strides = [1] * left.type.rank
    for axis, stride in zip(of_left, node.attrs["stride"], strict=True):
        strides[axis] = stride
    every = slice_(left, (0,) * left.type.rank, left.shape, strides) if max(strides) > 1 else left
    return reshaped(every, (*every.shape, *(1 for _ in of_left)))


def _sides(node: Node, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return node.attrs["batch"][side], node.attrs["contract"][side]


def convolution_as_dot(
    node: Node, staged: bool, as_rows: Callable[[Node, Node], bool], plain: bool
) -> tuple[Node, tuple[int, ...]]:
    """A dot of the windows and the right operand, and the order of its axes that gives those of the convolution.

    If operands are `staged` (Products.stages_operands), the windows are the dot's left operand, and its axes are in the
    convolution's order. Otherwise they are its left operand if neighbours in memory are channels. If neighbours are
    along a window's axis, `as_rows` chooses between the dot with windows on the left, as rows, and that with windows on
    the right. Summed axes are in the windows' order in memory in the first of these cases, and if neighbours are along
    a window's axis, which is not summed, in the order of the convolution's right operand.
    """
    left, (left_batch, right_batch) = node.operands[0], node.attrs["batch"]
    along_window = left.type.rank - 1 in node.attrs["window"][0]
    windows, same = _windows(node, plain), tuple(range(node.type.rank))
    met = sorted(_met(node), key=lambda pair: pair[1]) if along_window else _met(node)
    of_windows, of_right = tuple(axis for axis, _ in met), tuple(other for _, other in met)
    batches, precision = (left_batch, right_batch), precision_of(node)
    rows = dot(windows, node.operands[1], (of_windows, of_right), batches, **precision)
    if not along_window or staged:
        return _in_order(rows) if staged else rows, same
    columns = dot(node.operands[1], windows, (of_right, of_windows), (right_batch, left_batch), **precision)
    if as_rows(rows, columns):
        return rows, same
    batch, kept = len(left_batch), len(free_axes(left.type, *_sides(node, 0)))
    count = node.type.rank - batch - kept  # of the right operand's free axes, which precede those of the windows
    return columns, (*range(batch), *range(batch + count, node.type.rank), *range(batch, batch + count))


def _met(node: Node) -> list[tuple[int, int]]:
    """The summed axes of the windows and of the right operand, in the order in which the left one lies in memory."""
    rank, (of_left, of_right) = node.operands[0].type.rank, node.attrs["window"]
    left_sum, right_sum = node.attrs["contract"]
    elements = range(rank, rank + len(of_left))
    by_left = zip((*left_sum, *of_left), (*left_sum, *elements), (*right_sum, *of_right), strict=True)
    return [(axis, other) for _, axis, other in sorted(by_left)]


def _in_order(product: Node) -> Node:
    """The dot with the right operand's axes in the order in which they are summed; fusion may copy it in this order."""
    windows, right = product.operands
    (_, batch), (of_windows, summed) = product.attrs["batch"], product.attrs["contract"]
    order = (*batch, *summed, *free_axes(right.type, batch, summed))
    if order == tuple(range(right.type.rank)):
        return product
    places = tuple(range(len(batch), len(batch) + len(summed)))
    batches = product.attrs["batch"][0], tuple(range(len(batch)))
    narrow = as_stored(right)
    ordered = transpose(narrow, order)
    if narrow is not right:
        ordered = cast(ordered, right.dtype)
    return dot(windows, ordered, (of_windows, places), batches, **precision_of(product))
