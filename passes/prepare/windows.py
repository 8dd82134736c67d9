"""Operands of convolutions lie so that a product of windows loads neighbours in memory as vectors.

Windows are rows of a product whose sum is over channels or images, and elements of a window are neighbours along
neither. So the operand of the windows is read with an axis last that is no window's, and weights whose last axes are
the window's are rounded in another order: the window's axes first, and channels the other way round, because the array
is then transposed as a matrix whose rows are neighbours in memory. They are stored once for all that read them.

Weights that have 16 bits need no rounding. They are copied in that order, which the rounding of what was widened says,
if their elements are read so often that it pays: else a product would load them number by number.
"""

from __future__ import annotations

from math import prod

from lavax.ir.graph import INPUT, Graph, Node, graph_of, with_operands
from lavax.ir.ops.contraction import free_axes
from lavax.ir.types import float32
from lavax.passes.build.builder import cast, located, reshape, set_location, transpose, transposed
from lavax.passes.build.contraction_geometry import REORDERED_NARROW
from lavax.passes.build.matching import other_axes
from lavax.passes.numerics.rounding import rounds_operands
from lavax.passes.simplify.window import conv_over_moved
from lavax.passes.target.target import Target

Axes = tuple[int, ...]

# Channels of a group that are whole vectors and fill a matrix. The weights' gradient of 4 channels took an H100 41 µs
# with pixels as neighbours and 108 with channels, of 8 35 and 44, of 16 46 and less than 28.
_WHOLE_GROUPS = 16


def with_windows_in_vectors(graph: Graph, target: Target) -> Graph:
    """The graph with the operands of its convolutions in that order, for devices that stage operands."""
    if not target.products.stages_operands or not any(node.op == "conv" for node in graph.nodes):
        return graph
    orders = _orders_of_weights(graph)
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    copied: dict[Node, Node] = {}  # what convolutions read in place of these, from copies in order
    with located():
        for node in graph.nodes:
            set_location(node.location)
            same = with_operands(node, tuple([found[operand] for operand in node.operands]))
            if node in orders:
                found[node] = _in_order(same, orders[node])
            else:
                same = _with_groups_apart_in_memory(_with_copied_weights(node, same, orders, copied))
                found[node] = conv_over_moved(same) if _is_turned(same) else same
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _orders_of_weights(graph: Graph) -> dict[Node, Axes]:
    """The roundings of weights whose last axes are the window's, such inputs of 16 bits that convolutions read often,
    and the order in which each is best stored.

    Where a window's axis is the last of what it goes over, too, the weights lie as the windows do.
    """
    found: dict[Node, Axes] = {}
    alike, reads = set(), dict.fromkeys(graph.inputs, 0)
    for node in graph.nodes:
        if node.op == "conv":
            weights, windows = _weights_of(node.operands[1], node.attrs["window"][1])
            if weights is not None and _are_last(weights, windows):
                rest = other_axes(weights.type.rank, windows)
                found[weights] = (*sorted(windows), *reversed(rest))
                along = node.operands[0].type.rank - 1 in node.attrs["window"][0]
                if along and not _is_turned(_with_groups_apart_in_memory(node)):
                    alike.add(weights)
                if weights.op == INPUT and rounds_operands(node):
                    reads[weights] += _reads_of_weights(node)
    few = {weights for weights in found if weights.op == INPUT and not REORDERED_NARROW.pay(weights, reads[weights])}
    return {weights: order for weights, order in found.items() if weights not in alike | few}


def _weights_of(operand: Node, windows: Axes) -> tuple[Node | None, Axes]:
    """The cast that rounds an array to 16 bits for a convolution, or the array that has them, and the window's axes
    there."""
    node = operand
    while node.op in ("cast", "flip", "transpose", "reshape"):
        (operand,) = node.operands
        if node.op == "cast" and node.dtype.bits == 16 and operand.dtype.bits == 32:
            return (node if operand.op == INPUT else None), windows
        if node.op == "transpose":
            windows = tuple(node.attrs["axes"][axis] for axis in windows)
        elif node.op == "reshape":
            parts = _parts_of(operand.shape, node.shape)
            if parts is None or any(len(each) > 1 for each in parts if set(each) & set(windows)):
                return None, windows
            windows = tuple(next(axis for axis, each in enumerate(parts) if window in each) for window in windows)
        node = operand
    return (node if node.op == INPUT and node.dtype.is_float and node.dtype.bits == 16 else None), windows


def _reads_of_weights(node: Node) -> int:
    """How often a convolution reads each element of its right operand. Of padding between the elements of the left
    one, which is zero, it has a phase of its own each (decompose/phases.py), which reads others."""
    right, (_, batch), (_, summed) = node.operands[1], node.attrs["batch"], node.attrs["contract"]
    columns = free_axes(right.type, (*batch, *node.attrs["window"][1]), summed)
    results: int = prod(right.shape[axis] for axis in (*batch, *columns))
    for interior in node.attrs["interior"]:
        results *= interior + 1
    return node.type.size // results


def _with_copied_weights(node: Node, same: Node, orders: dict[Node, Axes], copied: dict[Node, Node]) -> Node:
    """A convolution that reads its weights of 16 bits from a copy in order, of which there is one for all."""
    if node.op != "conv":
        return same
    weights, _ = _weights_of(node.operands[1], node.attrs["window"][1])
    if weights is None or weights.op != INPUT or weights not in orders:
        return same
    return with_operands(same, (same.operands[0], _from_copy(node.operands[1], weights, orders[weights], copied)))


def _from_copy(operand: Node, weights: Node, order: Axes, copied: dict[Node, Node]) -> Node:
    """What is only moved or widened from weights of 16 bits, made of their copy."""
    if operand not in copied:
        if operand is weights:
            rounding = cast(cast(weights, float32), weights.dtype)
            copied[operand] = _in_order(rounding, order)
        else:
            copied[operand] = with_operands(operand, (_from_copy(operand.operands[0], weights, order, copied),))
    return copied[operand]


def _parts_of(shape: Axes, parted: Axes) -> list[Axes] | None:
    """Per axis of a shape the axes of another one that it is taken apart into; None if these join some."""
    found, axis = [], 0
    for extent in shape:
        first, size = axis, 1
        while axis < len(parted) and (size < extent or axis == first) and extent % (size * parted[axis]) == 0:
            size *= parted[axis]
            axis += 1
        if size != extent:
            return None
        found.append(tuple(range(first, axis)))
    return found if axis == len(parted) else None


def _with_groups_apart_in_memory(node: Node) -> Node:
    """conv(reshape(transpose(x)), y) as conv(transpose(reshape(x)), y), where groups of so many channels are taken
    apart, and memory has channels last."""
    if node.op != "conv" or not rounds_operands(node):
        return node
    left, right = node.operands
    taken_apart = left.operands[0] if left.op == "cast" else left
    if taken_apart.op != "reshape" or taken_apart.operands[0].op != "transpose":
        return node
    (moved,) = taken_apart.operands
    parts = _parts_of(moved.shape, taken_apart.shape)
    if parts is None:
        return node
    (x,), axes = moved.operands, moved.attrs["axes"]
    order = [part for axis in range(x.type.rank) for part in parts[axes.index(axis)]]  # of the parts, in memory
    if taken_apart.shape[order[-1]] % _WHOLE_GROUPS:
        return node
    apart = reshape(x, [taken_apart.shape[part] for part in order])
    if left is not taken_apart:
        apart = cast(apart, left.dtype)
    return with_operands(node, (transposed(apart, [order.index(part) for part in range(len(order))]), right))


def _are_last(weights: Node, windows: Axes) -> bool:
    """Whether the window's axes are the last ones of the weights, and hold several elements."""
    rank = weights.type.rank
    is_last = sorted(windows) == list(range(rank - len(windows), rank))
    return is_last and prod(weights.shape[axis] for axis in windows) > 1


def _in_order(rounding: Node, order: Axes) -> Node:
    ordered = cast(transpose(rounding.operands[0], order), rounding.dtype)
    return transposed(ordered, [order.index(axis) for axis in range(len(order))])


def _is_turned(node: Node) -> bool:
    """Whether a convolution's left operand has a window's axis last, and memory holds it with an axis of its own last,
    which the convolution keeps."""
    if node.op != "conv" or node.operands[0].op != "transpose":
        return False
    left, windows = node.operands[0], node.attrs["window"][0]
    last = left.attrs["axes"].index(left.type.rank - 1)
    kept = free_axes(left.type, node.attrs["batch"][0], node.attrs["contract"][0])
    is_grouped = bool(node.attrs["batch"][0]) and rounds_operands(node)  # all others have been moved before
    return left.type.rank - 1 in windows and (is_grouped or last in kept) and last not in windows
