"""Interiors of arrays that are computed of shifted slices, and padded: at each place of the array, not of the interior.

`x.at[1:-1, 1:-1].add(x[2:, 1:-1] + x[:-2, 1:-1] - 2 * x[1:-1, 1:-1])` pads what is computed over the interior, which
begins one element behind each row. Read at the interior's places, no vector of four neighbours begins where one does in
memory. With f elementwise,

    pad(f(slice(x), slice(y)))  =  where(inside, f(shifted x, shifted y), padding)

and a shifted array is read at the places of the whole: where it is shifted along other axes only, in vectors, or by the
same positions as other rows of a block (emit/map/row_blocks.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Graph, Node, graph_of, make_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType, bool_
from lavax.passes.build.builder import located, pad, set_location, slice_, splat, where
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class AlignedPads:
    """The pads that are taken apart: of arrays with so many elements, computed by so many operations.

    The page on loops of CPU drivers has their times, "Interiors".
    """

    elements: int = 1 << 10
    operations: int = 64
    row: int = 16  # elements of a row whose length is no multiple of a vector's, at least


ALIGNED_PADS = AlignedPads()


def with_aligned_pads(graph: Graph, target: Target) -> Graph:
    """The graph in which interiors are computed at the places of the arrays that they are slices of."""
    chosen = {node: found for node in graph.nodes if (found := _computed(node, graph, target))}
    if not chosen:
        return graph
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            if node in chosen:
                new[node] = _at_all_places(node, chosen[node], new)
            else:
                new[node] = with_operands(node, tuple([new[operand] for operand in node.operands]))
    return graph_of(graph.inputs, [new[output] for output in graph.outputs])


def _computed(node: Node, graph: Graph, target: Target) -> Sequence[Node]:
    """What a pad's operand is computed of, operands first, if that is for nothing else; empty if it is to stay."""
    if node.op != "pad" or target.vector == 1 or node.type.size < ALIGNED_PADS.elements:
        return ()
    widths = (*node.attrs["low"], *node.attrs["high"])
    if node.shape[-1] % target.vector and node.shape[-1] < ALIGNED_PADS.row:
        return ()
    if any(node.attrs["interior"]) or min(widths) < 0:
        return ()
    found: dict[Node, None] = {}
    waiting, slices, wanted = [node.operands[0]], 0, {node}
    while waiting:
        value = waiting.pop()
        if _is_slice(value, node):
            slices += 1
        elif value.op != "constant":
            is_computed = value.op != INPUT and OPERATIONS[value.op].family == "elementwise"
            if not is_computed or value in graph.outputs or len(found) == ALIGNED_PADS.operations:
                return ()
            found[value] = None
            wanted.add(value)
            waiting += [operand for operand in value.operands if operand not in found]
    if slices < 2 or any(not wanted.issuperset(graph.users[value]) for value in found):
        return ()
    return [value for value in graph.nodes if value in found]


def _is_slice(value: Node, padded: Node) -> bool:
    """Whether the value is a part of an array as large as the padded one."""
    return (
        value.op == "slice"
        and set(value.attrs["stride"]) == {1}
        and value.operands[0].shape == padded.shape
    )


def _at_all_places(padded: Node, computed: Sequence[Node], new: Mapping[Node, Node]) -> Node:
    low, high, value = padded.attrs["low"], padded.attrs["high"], padded.attrs["value"]
    whole: dict[Node, Node] = {}

    def placed(operand: Node) -> Node:
        if operand not in whole:
            type = TensorType(padded.shape, operand.dtype)
            if operand.op == "constant":
                whole[operand] = splat(operand.attrs["value"], type)
            else:
                moved = [start - before for start, before in zip(operand.attrs["start"], low, strict=True)]
                whole[operand] = _shifted(new[operand.operands[0]], moved)
        return whole[operand]

    for node in computed:
        operands = [placed(operand) for operand in node.operands]
        whole[node] = make_node(node.op, operands, node.attrs, TensorType(padded.shape, node.dtype), node.location)
    inside = splat(True, TensorType(padded.operands[0].shape, bool_))
    is_inside = pad(inside, low, high, (0,) * len(low), False)
    return where(is_inside, whole[padded.operands[0]], splat(value, padded.type))


def _shifted(x: Node, by: Sequence[int]) -> Node:
    """The element that is so many places further on, at every place that has one; zeros elsewhere."""
    extents = tuple(zip(x.shape, by, strict=True))
    start, limit = [max(moved, 0) for moved in by], [min(extent, extent + moved) for extent, moved in extents]
    rank = x.type.rank
    kept = slice_(x, start, limit, (1,) * rank)
    zero = x.dtype.number(0)
    return pad(kept, [max(-moved, 0) for moved in by], [max(moved, 0) for moved in by], (0,) * rank, zero)
