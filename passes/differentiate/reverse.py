"""The walk backwards over a graph that appends the nodes of its gradient."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from lavax.errors import DtypeError, NonScalarGradError
from lavax.ir.graph import Graph, Node, graph_of, input_node
from lavax.passes.builder import add, located, set_location, splat, zeros
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE, RULES


def _chosen_inputs(graph: Graph, wrt: Sequence[int]) -> list[Node]:
    for position in wrt:
        if not 0 <= position < len(graph.inputs):
            raise IndexError(f"differentiate: there is no input {position}, the graph has {len(graph.inputs)} inputs")
        chosen = graph.inputs[position]
        if not chosen.dtype.is_float:
            raise DtypeError(f"differentiate: input {chosen.name} is {chosen.type}; only floats have gradients")
    return [graph.inputs[position] for position in wrt]


def _depending_on(graph: Graph, sources: Sequence[Node]) -> set[Node]:
    """The values that a small change of `sources` changes by a small amount."""
    active = set(sources)
    for node in graph.nodes:
        if node.dtype.is_float and node.op not in NOT_DIFFERENTIABLE and not active.isdisjoint(node.operands):
            active.add(node)
    return active


def _backward(graph: Graph, sources: Sequence[Node], seeds: Mapping[Node, Node]) -> list[Node]:
    """The cotangents of `sources`, given those of some of the graph's values."""
    active = _depending_on(graph, sources)
    cotangents = {node: seed for node, seed in seeds.items() if node in active}
    with located():
        for node in reversed(graph.nodes):
            if node not in cotangents:
                continue
            set_location(node.location)
            rule, cotangent = RULES[node.op], cotangents[node]
            for position, operand in enumerate(node.operands):
                if operand in active:
                    gradient = rule(node, cotangent, position)
                    sum_so_far = cotangents.get(operand)
                    cotangents[operand] = gradient if sum_so_far is None else add(sum_so_far, gradient)
    return [cotangents[source] if source in cotangents else zeros(source.type) for source in sources]


def differentiate(graph: Graph, wrt: Sequence[int], output: int = 0) -> Graph:
    """The graph of `graph`'s outputs, followed by the gradients of one of them.

    `wrt` are the positions of float inputs; the gradient for each has that input's type, and is zero where the
    input does not matter. `output` is the position of a float scalar. The result is an ordinary graph and can
    be differentiated again. Raises NonScalarGradError for another output, DtypeError for an input that is not
    a float, IndexError for an input that does not exist.
    """
    sources = _chosen_inputs(graph, wrt)
    value = graph.outputs[output]
    if value.shape != () or not value.dtype.is_float:
        raise NonScalarGradError(f"differentiate: output {output} is {value.type}; a gradient needs a float scalar")
    gradients = _backward(graph, sources, {value: splat(1, value.type)})
    return graph_of(graph.inputs, (*graph.outputs, *gradients))


def vjp(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of `graph`'s outputs, followed by the cotangents of the inputs at `wrt`.

    It has one more input for each float output, after the inputs of `graph`: that output's cotangent. They are
    called cotangent0, cotangent1, …, less the names that are taken. The result is linear in them.
    Raises DtypeError for an input in `wrt` that is not a float, IndexError for one that does not exist.
    """
    sources = _chosen_inputs(graph, wrt)
    taken = {node.name for node in graph.inputs}
    names = (name for number in count() if (name := f"cotangent{number}") not in taken)
    given: list[Node] = []
    seeds: dict[Node, Node] = {}
    for value in graph.outputs:
        if value.dtype.is_float:
            given.append(input_node(next(names), value.type))
            seeds[value] = add(seeds[value], given[-1]) if value in seeds else given[-1]
    gradients = _backward(graph, sources, seeds)
    return graph_of((*graph.inputs, *given), (*graph.outputs, *gradients))
