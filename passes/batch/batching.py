"""The walk over a graph that adds a batch axis to its values."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import Graph, Node, graph_of, input_node, with_operands
from lavax.passes.batch.batch_rule import Axis, Operand, from_front, in_front, to_front
from lavax.passes.batch.named_axes import refers_to
from lavax.passes.batch.rules import RULES
from lavax.passes.build.builder import located, set_location


def batch_nodes(graph: Graph, operands: Mapping[Node, Operand], axis: Axis) -> list[Operand]:
    """The outputs of `graph` with its inputs replaced by `operands`; rebuilds its nodes."""
    found = dict(operands)
    for node in graph.nodes:
        given = [found[operand] for operand in node.operands]
        if any(operand.batched for operand in given) or refers_to(node, axis.name):
            set_location(node.location)
            found[node] = RULES[node.op](node, given, axis)
        else:
            found[node] = Operand(with_operands(node, tuple(operand.node for operand in given)), False)
    return [found[output] for output in graph.outputs]


def batch(
    graph: Graph, in_axes: Sequence[int | None], out_axes: Sequence[int | None], size: int, name: str | None = None
) -> Graph:
    """The graph that computes `graph` for `size` elements at once.

    An input with an axis has an additional axis at that position, of extent `size`; an input with None is the same
    for all elements. An output with an axis gets an additional axis there; one with None must be the same for all
    elements. Axes are counted from the front. Reductions over the axis `name` become reductions over the batch.
    Raises ValueError for an output that has no axis but differs between elements.
    """
    axis = Axis(size, name)
    inputs: list[Node] = []
    operands: dict[Node, Operand] = {}
    with located():
        for node, position in zip(graph.inputs, in_axes, strict=True):
            if position is None:
                inputs.append(node)
                operands[node] = Operand(node, False)
            else:
                shape = (*node.shape[:position], size, *node.shape[position:])
                inputs.append(input_node(node.name, node.type.with_shape(shape)))
                operands[node] = Operand(to_front(inputs[-1], position), True)
        results = batch_nodes(graph, operands, axis)
        outputs = [_placed(result, position, axis) for result, position in zip(results, out_axes, strict=True)]
    return graph_of(inputs, outputs)


def differing_outputs(graph: Graph, in_axes: Sequence[int | None], size: int, name: str | None = None) -> list[bool]:
    """For each output of `graph`, whether it differs between the elements of a batch."""
    operands = {
        node: Operand(node, False) if position is None else Operand(_with_front(node, size), True)
        for node, position in zip(graph.inputs, in_axes, strict=True)
    }
    with located():
        return [result.batched for result in batch_nodes(graph, operands, Axis(size, name))]


def _with_front(node: Node, size: int) -> Node:
    return input_node(node.name, node.type.with_shape((size, *node.shape)))


def _placed(result: Operand, position: int | None, axis: Axis) -> Node:
    if position is None:
        if result.batched:
            raise ValueError("batch: an output without an axis differs between the elements of the batch")
        return result.node
    return from_front(in_front(result, axis), position)
