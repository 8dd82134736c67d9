"""Convolutions of each channel by itself, and gradients of their weights, with channels last.

As products they would have one column for each of many channels: there is nothing to share but what windows of one
channel have in common. So lanes have neighbouring channels, and an invocation a few neighbouring windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.ops.contraction import free_axes
from lavax.ir.types import DTYPES
from lavax.passes.build.builder import build, located, pad, reshape, reshaped, set_location, transposed
from lavax.passes.numerics.rounding import Roundings, rounded, rounds_operands
from lavax.passes.prepare.decompose.phases import axis_of_phases, convolution_in_phases
from lavax.passes.prepare.decompose.window import widened
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class DepthwiseLimits:
    """Exercised by `python -m benchmarks architectures` (convnext)."""

    least_channels: int = 8
    least_products: int = 1 << 16  # of small ones a sum is fused with what follows
    written_out: int = 8  # elements of a window's line that an invocation takes at once; longer lines have whole fours
    step: int = 4
    busy: int = 1 << 16  # invocations that keep a device busy: so many parts have the sums
    bytes_of_parts: int = 2  # per byte of the operands, at most
    neighbours: int = 4  # channels of an invocation
    windows: int = 4  # of an invocation, at least, if there are so many


_LIMITS = DepthwiseLimits()
Axes = tuple[int, ...]


def with_depthwise_convolutions(graph: Graph, target: Target) -> Graph:
    """The graph whose convolutions of single channels are `depthwise_conv`, for devices that stage operands."""
    if not target.products.stages_operands or not any(map(_is_depthwise, graph.nodes)):
        return graph
    lowering = _Lowering()
    found = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            same = with_operands(node, tuple([found[operand] for operand in node.operands]))
            found[node] = lowering.lowered(same) if _is_depthwise(node) else same
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _is_depthwise(node: Node) -> bool:
    """Whether a convolution has one axis of many channels, each with weights of its own for one result."""
    if node.op != "conv" or len(node.attrs["batch"][0]) != 1 or not node.attrs["window"][0] or not node.type.size:
        return False
    left, right = node.operands
    channels = left.shape[node.attrs["batch"][0][0]]
    columns = free_axes(right.type, (*node.attrs["batch"][1], *node.attrs["window"][1]), node.attrs["contract"][1])
    is_single = prod(right.shape[axis] for axis in columns) == 1
    terms = right.type.size // max(channels, 1)
    is_large = node.type.size * terms >= _LIMITS.least_products
    return channels >= _LIMITS.least_channels and is_single and is_large


class _Lowering:
    """What convolutions of a graph share: an operand that is rounded, or has channels last, is so for all of them."""

    def __init__(self) -> None:
        self.roundings: Roundings = {}
        self.moved: dict[tuple[Node, Axes], Node] = {}

    def lowered(self, node: Node) -> Node:
        if rounds_operands(node):
            dtype = DTYPES[node.attrs["precision"]]
            node = with_operands(node, tuple([rounded(operand, dtype, self.roundings) for operand in node.operands]))
        return self._in_phases(node)

    def _in_phases(self, node: Node) -> Node:
        place = axis_of_phases(node)
        return self._channels_last(node) if place is None else convolution_in_phases(node, place, self._in_phases)

    def _channels_last(self, node: Node) -> Node:
        (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
        (of_left, of_right), (left, right) = node.attrs["window"], node.operands
        kept = free_axes(left.type, left_batch, left_sum)
        rows = [axis for axis in kept if axis not in of_left]
        columns = free_axes(right.type, (*right_batch, *of_right), right_sum)
        front = prod(_extents(left, rows)), prod(_extents(left, left_sum))
        x = self._moved(left, (*rows, *left_sum), (*of_left, *left_batch))
        x = reshaped(x, (*front, *_extents(left, of_left), *_extents(left, left_batch)))
        x = widened(x, range(2, 2 + len(of_left)), node)
        weights = self._moved(right, (*right_sum, *columns), (*of_right, *right_batch))
        weights = reshaped(weights, (front[1], *_extents(right, of_right), *_extents(right, right_batch)))
        parts = _summed_in_parts(x, weights, node.attrs["stride"], node.attrs["dilation"])
        sums = build("sum", parts, axes=(0,)) if parts.shape[0] > 1 else reshape(parts, parts.shape[1:])
        # Axes of the sums: rows, windows in their order, channels; of the convolution: channels, then all that is kept.
        whole = reshaped(sums, (*_extents(left, rows), *sums.shape[1:]))
        order = (*rows, *of_left)
        return reshaped(transposed(whole, (len(order), *(order.index(axis) for axis in kept))), node.shape)

    def _moved(self, operand: Node, first: Axes, last: Axes) -> Node:
        """The operand with these axes in this order, but for those of one element among the first."""
        units = sorted(axis for axis in first if operand.shape[axis] == 1)
        order = (*(axis for axis in first if operand.shape[axis] > 1), *units, *last)
        if (operand, order) not in self.moved:
            self.moved[operand, order] = transposed(operand, order)
        return self.moved[operand, order]


def _extents(node: Node, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(node.shape[axis] for axis in axes)


def _summed_in_parts(x: Node, weights: Node, stride: tuple[int, ...], dilation: tuple[int, ...]) -> Node:
    """The convolution with the last axis of a long window filled up to whole steps."""
    line = weights.shape[-2]
    step = line if line <= _LIMITS.written_out else _LIMITS.step
    missing = -line % step
    if missing:
        weights, x = _longer(weights, missing), _longer(x, missing * dilation[-1])
    return build(
        "depthwise_conv", x, weights, stride=stride, dilation=dilation, run=_run(x, weights, stride, dilation, step)
    )


def _longer(x: Node, more: int) -> Node:
    """`x` with zeros behind its axis before the last."""
    none = [0] * x.type.rank
    high = [more if axis == x.type.rank - 2 else 0 for axis in range(x.type.rank)]
    return pad(x, none, high, none, x.dtype.number(0))


def _run(x: Node, weights: Node, stride: tuple[int, ...], dilation: tuple[int, ...], step: int) -> int:
    """How many terms a part of a sum has: few enough to keep a device busy, and no more parts than their bytes are
    worth."""
    terms = prod(weights.shape[:-1])
    whole = build("depthwise_conv", x, weights, stride=stride, dilation=dilation, run=terms).type
    windows = min(whole.shape[-2], _LIMITS.windows)
    invocations = whole.size // windows // _LIMITS.neighbours
    most = _LIMITS.bytes_of_parts * (x.type.nbytes + weights.type.nbytes) // whole.nbytes
    least = -(-terms // (step * MAX_LOOP_ITERATIONS))
    parts = max(min(_LIMITS.busy // max(invocations, 1), most, terms // step), least, 1)
    return -(-terms // (parts * step)) * step
