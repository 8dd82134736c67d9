"""Pads what products by matrices read, and write, in lines of odd lengths, so that lines begin where vectors do.

Such a product stages its operands in vectors of eight elements of 16 bits. Where lines are no whole vectors, as with
50,257 columns, it stages them element by element, and takes twice as long. Zeros add nothing to a sum; rows and columns
of the result that are made of padding are cut off. So a stored array has padding behind each line, and all products
that read it share it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lavax.ir.graph import INPUT, Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import (
    build,
    cast,
    located,
    pad,
    precision_of,
    set_location,
    slice_,
    transposed,
)
from lavax.passes.numerics.narrow_movement import as_stored, is_widening
from lavax.passes.target.target import Target

# Moves between an operand and the array that memory holds, which keep or split its lines.
_REORDERING = frozenset(("reshape", "transpose"))
# The most of these that a search goes through.
_SEARCH_DEPTH = 8
# Lines of fewer vectors are left alone, and long ones are padded to multiples of so many vectors.
_SHORTEST, _TILE = 16, 8
# Operand axes, by side, and the extents that they are to have.
_Extents = tuple[dict[int, int], dict[int, int]]
_Padded = dict[tuple[Node, tuple[int, ...]], Node]


def with_padded_lines(graph: Graph, target: Target) -> Graph:
    """The graph in which large products by matrices read and write lines of whole vectors."""
    if not any(map(_is_narrow_product, graph.nodes)):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    cut: dict[Node, Node] = {}  # slices of padded results, and the results
    padded: _Padded = {}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            renewed = node if operands == node.operands else with_operands(node, operands)
            line = target.products.line(renewed) if _is_narrow_product(renewed) else 1
            if line > 1:
                renewed = _with_whole_lines(renewed, line, padded, cut)
            elif node.op == "cast" and node.dtype.bits == 16 and operands[0] in cut:
                # Cut after it is rounded, so that the product's kernel rounds it.
                renewed = _cut(cast(cut[operands[0]], node.dtype), node.shape, cut)
            found[node] = renewed
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def padding_of(operand: Node) -> Node | None:
    """The narrow array with padded lines that an operand of a product is, possibly in another order."""
    node = as_stored(operand)
    for _ in range(_SEARCH_DEPTH):
        if node.op == "pad":
            return node if node.dtype.bits == 16 and not any((*node.attrs["low"], *node.attrs["interior"])) else None
        if node.op not in _REORDERING and not is_widening(node):
            break
        (node,) = node.operands
    return None


def _is_narrow_product(node: Node) -> bool:
    """Whether both operands are arrays of 16 bits, as they are read."""
    if node.op != "dot" or not node.attrs["precision"]:
        return False
    return all(as_stored(operand).dtype.bits == 16 for operand in node.operands)


def _with_whole_lines(dot: Node, line: int, padded: _Padded, cut: dict[Node, Node]) -> Node:
    """The product of padded operands, cut to its shape."""
    extents = _extents(dot, line)
    if not any(extents):
        return dot
    operands = [_padded(operand, wanted, padded) for operand, wanted in zip(dot.operands, extents, strict=True)]
    attrs = {name: dot.attrs[name] for name in ("contract", "batch")}
    whole = build("dot", *operands, **attrs, **precision_of(dot))
    return _cut(whole, dot.shape, cut)


def _extents(dot: Node, line: int) -> _Extents:
    """The extents to which axes of the operands are padded: those that are lines of an operand, or of the result."""
    found: _Extents = ({}, {})
    contract, batch = dot.attrs["contract"], dot.attrs["batch"]
    stored = [_Stored.of(operand) for operand in dot.operands]
    free = [free_axes(operand.type, batch[side], contract[side]) for side, operand in enumerate(dot.operands)]
    last = 1 if free[1] else 0
    lines = [(side, array.line) for side, array in enumerate(stored)]
    lines += [(last, axis) for axis in free[last][-1:]]
    for side, axis in lines:
        extent = dot.operands[side].shape[axis]
        whole = _whole(extent, line)
        if axis in batch[side] or whole == extent:
            continue
        places = {side: axis}
        if axis in contract[side]:
            places[1 - side] = contract[1 - side][contract[side].index(axis)]
        if all(stored[other].may_be_padded for other in places):
            for other, place in places.items():
                found[other][place] = whole
    return found


def _whole(extent: int, line: int) -> int:
    """The least multiple of the line, or of several if that adds next to nothing: tiles have no edge then."""
    if extent < _SHORTEST * line:
        return extent
    step = line * _TILE if extent >= _SHORTEST * _TILE * line else line
    return -(-extent // step) * step


@dataclass(frozen=True)
class _Stored:
    """An operand as memory holds it: the narrow array, and the axis of the operand that each of its axes is."""

    array: Node
    axes: tuple[int, ...]

    @classmethod
    def of(cls, operand: Node) -> _Stored:
        node = as_stored(operand)
        axes = tuple(range(len(node.shape)))
        while node.op == "transpose":
            axes = tuple(axes[node.attrs["axes"].index(place)] for place in range(len(axes)))
            (node,) = node.operands
        return cls(node, axes)

    @property
    def line(self) -> int:
        """The axis of the operand along which elements are neighbours in memory."""
        return self.axes[-1]

    @property
    def may_be_padded(self) -> bool:
        """Whether the array has as many elements as memory holds, not those of windows."""
        op = self.array.op
        return op in (INPUT, "reshape", "slice") or OPERATIONS[op].family != "movement"

    def padded(self, extents: dict[int, int], made: _Padded) -> Node:
        """The operand's values with these extents of its axes, of 16 bits."""
        shape = self.array.shape
        high = tuple(extents.get(axis, extent) - extent for axis, extent in zip(self.axes, shape, strict=True))
        if (self.array, high) not in made:
            none = (0,) * len(high)
            made[self.array, high] = pad(self.array, none, high, none, self.array.dtype.number(0))
        return transposed(made[self.array, high], [self.axes.index(axis) for axis in range(len(high))])


def _padded(operand: Node, extents: dict[int, int], made: _Padded) -> Node:
    return cast(_Stored.of(operand).padded(extents, made), operand.dtype) if extents else operand


def _cut(whole: Node, shape: tuple[int, ...], cut: dict[Node, Node]) -> Node:
    """The part of a padded result that has the shape.

    What lies behind it is no padding for another sum: it is not zero if an operand is not finite.
    """
    if whole.shape == shape:
        return whole
    found = slice_(whole, (0,) * len(shape), shape, (1,) * len(shape))
    cut[found] = whole
    return found
