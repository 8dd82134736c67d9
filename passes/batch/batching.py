"""The walk over a graph that gives its values a batch axis."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import Graph, Node, graph_of, input_node, with_operands
from lavax.passes.batch.batch_rule import Axis, Operand, from_front, in_front, to_front
from lavax.passes.batch.named_axes import speaks_of
from lavax.passes.batch.rules import RULES
from lavax.passes.build.builder import located, set_location


def batch_nodes(graph: Graph, operands: Mapping[Node, Operand], axis: Axis) -> list[Operand]:
    """The outputs of `graph` on `operands`, which stand for its inputs; its nodes are rebuilt over them."""
    found = dict(operands)
    for node in graph.nodes:
        given = [found[operand] for operand in node.operands]
        if any(operand.batched for operand in given) or speaks_of(node, axis.name):
            set_location(node.location)
            found[node] = RULES[node.op](node, given, axis)
        else:
            found[node] = Operand(with_operands(node, tuple(operand.node for operand in given)), False)
    return [found[output] for output in graph.outputs]


def batch(
    graph: Graph, in_axes: Sequence[int | None], out_axes: Sequence[int | None], size: int, name: str | None = None
) -> Graph:
    """The graph that does what `graph` does for each of `size` elements at once.

    An input with an axis has one more axis there, of that extent, and an input with None is the same for all
    elements. An output with an axis gets one more there; one with None must be the same for all elements. Axes are
    counted from the front. Reductions over the axis `name` become reductions over the batch. Raises ValueError for
    an output that has no axis and differs between elements.
    """
    axis = Axis(size, name)
    inputs: list[Node] = []
    operands: dict[Node, Operand] = {}
    with located():
        for node, place in zip(graph.inputs, in_axes, strict=True):
            if place is None:
                inputs.append(node)
                operands[node] = Operand(node, False)
            else:
                shape = (*node.shape[:place], size, *node.shape[place:])
                inputs.append(input_node(node.name, node.type.with_shape(shape)))
                operands[node] = Operand(to_front(inputs[-1], place), True)
        results = batch_nodes(graph, operands, axis)
        outputs = [_placed(result, place, axis) for result, place in zip(results, out_axes, strict=True)]
    return graph_of(inputs, outputs)


def differing_outputs(graph: Graph, in_axes: Sequence[int | None], size: int, name: str | None = None) -> list[bool]:
    """For each output of `graph`, whether it differs between the elements of a batch."""
    operands = {
        node: Operand(node, False) if place is None else Operand(_with_front(node, size), True)
        for node, place in zip(graph.inputs, in_axes, strict=True)
    }
    with located():
        return [result.batched for result in batch_nodes(graph, operands, Axis(size, name))]


def _with_front(node: Node, size: int) -> Node:
    return input_node(node.name, node.type.with_shape((size, *node.shape)))


def _placed(result: Operand, place: int | None, axis: Axis) -> Node:
    if place is None:
        if result.batched:
            raise ValueError("batch: an output without an axis differs between the elements of the batch")
        return result.node
    return from_front(in_front(result, axis), place)
