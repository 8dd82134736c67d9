"""Functions with rules of their own at tangents, where they are linear: the transpose is that of what they compute.

As in JAX, a custom_jvp function that a rule calls at a tangent counts by its body: its own rule is for who
differentiates the call, not for who transposes it, and may give something else, such as a scaled gradient. The results
of forward and of reverse mode are then the same. A custom_vjp function, which JAX does not transpose, counts by its
rule, which is a transpose: so do solvers, whose bodies are loops or functions on the host that have none.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir.graph import Graph, Node, graph_of, make_node, with_operands
from lavax.passes.build.control_flow import parts_of
from lavax.passes.build.inline import inline
from lavax.passes.differentiate.dependence import carried, dependent_nodes

# Of control flow: whether the inputs of its bodies depend, for whether its operands do.
_READS: dict[str, tuple[str, Callable[[Node, Sequence[bool]], Sequence[bool]]]] = {
    "switch": ("branches", lambda node, reads: reads[1:]),
    "scan": ("body", lambda node, reads: carried(node.attrs["body"], reads, node.attrs["carries"])),
    "while": ("body", lambda node, reads: carried(node.attrs["body"], reads, len(parts_of(node)))),
    "checkpoint": ("body", lambda node, reads: reads),
    "custom_vmap": ("body", lambda node, reads: reads),
}


def with_bodies_of_calls(graph: Graph, reads: Sequence[bool]) -> Graph:
    """The graph with bodies in place of the calls that the inputs with a True in `reads` reach, in control flow too."""
    dependent = dependent_nodes(graph.nodes, {node for node, read in zip(graph.inputs, reads, strict=True) if read})
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    results: dict[Node, list[Node]] = {}  # a call -> the values of its body
    for node in graph.nodes:
        if node.op == "item" and node.operands[0] in results:
            found[node] = results[node.operands[0]][node.attrs["index"]]
            continue
        operands = tuple([found[operand] for operand in node.operands])
        of_operands = [operand in dependent for operand in node.operands]
        if any(of_operands) and node.op == "custom_jvp":
            results[node] = inline(with_bodies_of_calls(node.attrs["body"], of_operands), operands)
        elif any(of_operands) and node.op in _READS:
            found[node] = _with_changed_bodies(node, operands, of_operands)
        else:
            found[node] = with_operands(node, operands)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _with_changed_bodies(node: Node, operands: tuple[Node, ...], reads: Sequence[bool]) -> Node:
    name, inner = _READS[node.op]
    of_inputs, bodies = inner(node, reads), node.attrs[name]
    changed = (
        tuple(with_bodies_of_calls(body, of_inputs) for body in bodies)
        if isinstance(bodies, tuple)
        else with_bodies_of_calls(bodies, of_inputs)
    )
    return make_node(node.op, operands, {**node.attrs, name: changed}, node.type, node.location)
