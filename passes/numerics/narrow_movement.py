"""Moves values of 16 bits before they are widened, not after.

If a value is to be written in another order, memory then holds half as many bytes, and whatever reads it widens it.
"""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, make_node, with_operands
from lavax.passes.build.builder import cast, located, set_location

# Operations that have elements of one operand alone.
_MOVING = frozenset(("reshape", "transpose", "broadcast", "slice", "flip"))


def with_narrow_movement(graph: Graph) -> Graph:
    """The graph in which move(widen(x)) is widen(move(x))."""
    if not any(map(is_widening, graph.nodes)):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    widened: dict[Node, Node] = {}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            if node.op in _MOVING and is_widening(operands[0]):
                found[node] = _widened(_moved(node, operands[0].operands[0]), node, widened)
            else:
                found[node] = with_operands(node, operands)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def is_widening(node: Node) -> bool:
    """Whether the node only represents narrow floats in more bits."""
    if node.op != "cast":
        return False
    (operand,) = node.operands
    return operand.dtype.is_float and operand.dtype.bits < node.dtype.bits <= 32


def as_stored(node: Node) -> Node:
    """The value in the form that memory holds it in: not widened."""
    return node.operands[0] if is_widening(node) else node


def _moved(node: Node, narrow: Node) -> Node:
    return make_node(node.op, (narrow,), node.attrs, node.type.with_dtype(narrow.dtype), node.location)


def _widened(narrow: Node, node: Node, widened: dict[Node, Node]) -> Node:
    """The narrow value in the dtype of `node`, as one node for all that read it."""
    return widened.setdefault(narrow, cast(narrow, node.dtype))
