"""What follows a convolution is computed in the order of axes in which the convolution writes its result.

A convolution has channels last, whatever the order in which a network names its axes: its readers transpose it. Between
two convolutions stand operations that do not care about the order. If these are computed before the transposition and
not after it, arrays in memory have channels last, and neighbours in memory are read by neighbouring invocations. The
transpositions vanish in the next convolution, which names other axes of its operand then, and in sums.
"""

from __future__ import annotations

from typing import Literal

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType
from lavax.passes.build.builder import build, dot, free_axes_of, located, precision_of, set_location, transposed
from lavax.passes.build.matching import axis_groups, is_unit_reshape, unit_map
from lavax.passes.numerics.rounding import rounds_operands
from lavax.passes.prepare.moved_values import RULES, Moved, by_axes
from lavax.passes.simplify import contraction
from lavax.passes.simplify.window import conv_of_transpose
from lavax.passes.target.target import Target

Axes = tuple[int, ...]
# Which reshapes are computed in another order: none, those that only split other axes than the channels, as of a pool's
# pixels, or all, also if an axis of the value is then several, as of groups of channels.
Reshapes = Literal["none", "splits", "groups"]

# Operations that read a transposed operand over other axes.
_OF_TRANSPOSE = {"conv": conv_of_transpose, "dot": contraction.of_transpose}
# A repeated operand is put into the other order if it has at most one element for so many of the result.
_REPEATED = 8


def with_layouts_of_convolutions(graph: Graph, target: Target) -> Graph:
    """The graph in which transpositions of convolutions come after what can be computed before them.

    Groups of channels are moved for devices that stage operands, if convolutions round theirs: sums over groups in this
    order take longer, and products of rounded windows that are loaded as vectors gain more than that. If that
    transposes no fewer bytes, as where convolutions have groups, only what has no groups is moved; and if that does
    not, because little of what follows is indifferent to the order, the graph stays. For other devices, whose tiles
    read any order of axes, no reshape is moved.
    """
    convolutions = [node for node in graph.nodes if node.op == "conv"]
    if not convolutions and not any(node.op == "depthwise_conv" for node in graph.nodes):
        return graph
    stages = target.products.stages_operands
    rounds = stages and all(map(rounds_operands, convolutions))
    reshapes: dict[Reshapes, bool] = {"groups": rounds, "splits": stages, "none": True}
    moved = (_moved(graph, kind) for kind, may_be_moved in reshapes.items() if may_be_moved)
    least = _transposed_bytes(graph)
    return next((found for found in moved if _transposed_bytes(found) < least), graph)


def _moved(graph: Graph, reshapes: Reshapes) -> Graph:
    layouts = _Layouts(graph, reshapes)
    with located():
        for node in graph.nodes:
            set_location(node.location)
            layouts.take(node)
    return graph_of(graph.inputs, [layouts.plain(output) for output in graph.outputs])


def _transposed_bytes(graph: Graph) -> int:
    return sum(node.type.nbytes for node in graph.nodes if node.op == "transpose")


class _Layouts:
    """The values of the new graph, by those of the old one: as they are, or moved."""

    def __init__(self, graph: Graph, reshapes: Reshapes) -> None:
        inputs = graph.inputs
        self._reshapes = reshapes
        self._spread = _products_of_windows(graph)
        self._plain: dict[Node, Node] = {node: node for node in inputs}
        self._moved: dict[Node, Moved] = {}
        self._written: set[Node] = set()  # by convolutions, and what is computed from these in their order
        self._given = set(inputs)  # and what is computed from these alone, element by element

    def plain(self, node: Node) -> Node:
        """The value in the order of its own axes."""
        if node not in self._plain:
            self._plain[node] = self._moved[node].plain()
        return self._plain[node]

    def take(self, node: Node) -> None:
        """Notes the value of a node whose operands are noted."""
        moved = self._as_moved(node)
        if moved is None:
            self._keep(node, self._unmoved(node))
        elif moved.order == tuple(range(moved.x.type.rank)):
            found = moved.plain()
            self._keep(node, found)
            self._written |= {found, moved.x}
        else:
            self._moved[node] = moved
            self._written.add(moved.x)

    def _keep(self, node: Node, found: Node) -> None:
        self._plain[node] = found
        if found.op in ("conv", "depthwise_conv") or (is_unit_reshape(found) and found.operands[0] in self._written):
            self._written.add(found)
        elif OPERATIONS[found.op].family == "elementwise":
            large = [operand for operand in found.operands if not _is_cheap_to_move(operand)]
            if any(operand in self._written for operand in large):
                self._written.add(found)
            elif all(operand in self._given for operand in large):
                self._given.add(found)

    def _unmoved(self, node: Node) -> Node:
        same = with_operands(node, tuple(map(self.plain, node.operands)))
        rule = _OF_TRANSPOSE.get(same.op)
        return (rule and rule(same)) or same

    def _as_moved(self, node: Node) -> Moved | None:
        if not node.operands:
            return None
        if node in self._spread:
            return _elements_first(self._unmoved(node), self._spread[node])
        first = node.operands[0]
        if OPERATIONS[node.op].family == "elementwise":
            return self._elementwise(node)
        if node.op == "transpose":
            if first in self._moved:
                moved = self._moved[first]
                return Moved(moved.x, tuple(moved.axes[axis] for axis in node.attrs["axes"]))
            found = self.plain(first)
            return by_axes(found, node.attrs["axes"]) if found in self._written else None
        if node.op == "concatenate":
            return self._concatenated(node)
        rule = RULES.get(node.op)
        if rule is None or first not in self._moved or (node.op == "reshape" and not self._may_be_moved(node)):
            return None
        return rule(node, self._moved[first])

    def _may_be_moved(self, reshape: Node) -> bool:
        if self._reshapes == "splits":
            pairs = axis_groups(reshape.operands[0].shape, reshape.shape)
            splits = {left[0] for left, right in pairs if len(right) > 1}
            only_splits = bool(splits) and all(len(left) == 1 for left, _ in pairs)
            return only_splits and self._channels_of(reshape) not in splits
        return self._reshapes == "groups"

    def _channels_of(self, reshape: Node) -> int | None:
        """The axis of a reshape's operand whose elements are neighbours in memory, as computed."""
        moved = self._moved[reshape.operands[0]]
        return next((place for place, group in enumerate(moved.axes) if moved.x.type.rank - 1 in group), None)

    def _elementwise(self, node: Node) -> Moved | None:
        """The operation before the movement that at least half of its large operands share.

        What is computed from arguments alone, such as an optimizer's state, stays in the order that these have.
        """
        large = [operand for operand in node.operands if not _is_cheap_to_move(operand)]
        moved = [self._moved[operand] for operand in large if operand in self._moved]
        others = [operand for operand in large if operand not in self._moved]
        if len(moved) < max(len(others), 1) or any(self.plain(other) in self._given for other in others):
            return None
        like = moved[0]
        if not all(each.is_alike(like) for each in moved):
            return None
        operands = [self._in_order_of(operand, like) for operand in node.operands]
        return Moved(build(node.op, *operands, type=TensorType(like.x.shape, node.dtype), **node.attrs), like.axes)

    def _in_order_of(self, node: Node, like: Moved) -> Node:
        moved = self._moved.get(node)
        if moved is not None and moved.is_alike(like):
            return moved.x
        return like.in_this_order(self.plain(node))

    def _concatenated(self, node: Node) -> Moved | None:
        if not all(operand in self._moved for operand in node.operands):
            return None
        moved = [self._moved[operand] for operand in node.operands]
        axes, group = moved[0].axes, moved[0].axes[node.attrs["axis"]]
        others = {(*each.x.shape[: group[0]], *each.x.shape[group[0] + 1 :]) for each in moved}
        if any(each.axes != axes for each in moved) or len(group) > 1 or len(others) > 1:
            return None
        return Moved(build("concatenate", *(each.x for each in moved), axis=group[0]), axes)


def _products_of_windows(graph: Graph) -> dict[Node, Axes]:
    """The products whose results are windows of what an operand gets by a strided convolution's derivative, and the
    axes of the elements of a window, which are the right operand's."""
    found = {}
    for node in graph.nodes:
        if node.op == "unshear":
            (windows,), elements = node.operands, node.attrs["along"]
            while min(elements) >= 0 and (windows.op in ("cast", "transpose") or is_unit_reshape(windows)):
                (before,) = windows.operands
                if windows.op == "transpose":
                    elements = tuple(windows.attrs["axes"][axis] for axis in elements)
                elif windows.op == "reshape":
                    of_before = {after: axis for axis, after in unit_map(before.shape, windows.shape).items()}
                    elements = tuple(of_before.get(axis, -1) for axis in elements)
                windows = before
            if windows.op == "dot" and min(elements) >= windows.type.rank - len(free_axes_of(windows)[1]):
                found[windows] = elements
    return found


def _elements_first(product: Node, elements: Axes) -> Moved:
    """The product with the elements of a window before what else is free in the right operand, such as channels, if
    that is rounded, and so stored in any order."""
    if not rounds_operands(product):
        return by_axes(product, range(product.type.rank))
    left, right = product.operands
    batch, summed = product.attrs["batch"], product.attrs["contract"]
    free = free_axes_of(product)[1]
    start = product.type.rank - len(free)
    places = [*elements, *(axis for axis in range(start, product.type.rank) if axis not in elements)]
    order = [*batch[1], *(free[place - start] for place in places), *summed[1]]
    batches, pairs = ((axes[0], tuple(map(order.index, axes[1]))) for axes in (batch, summed))
    turned = dot(left, transposed(right, order), pairs, batches, **precision_of(product))
    axes = [*range(start), *(start + places.index(axis) for axis in range(start, product.type.rank))]
    return by_axes(turned, axes)


def _is_cheap_to_move(node: Node) -> bool:
    while node.op == "cast":
        (node,) = node.operands
    if node.op == "broadcast":
        return node.operands[0].type.size * _REPEATED <= node.type.size
    return node.op in ("constant", "iota")
