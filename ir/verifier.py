"""Checks that a graph obeys every rule of the intermediate representation."""
from __future__ import annotations

from collections.abc import Iterator

from lavax.base.errors import VerificationError
from lavax.ir.graph import INPUT, Graph, Node, require_graph
from lavax.ir.limits import MOST_NESTED, fault_of_type
from lavax.ir.node_rules import broken_rule
from lavax.ir.printer import value_names
from lavax.ir.types import TupleType


def _broken_rule(node: Node, defined: set[Node]) -> str | None:
    if any(operand not in defined for operand in node.operands):
        return "an operand is not defined before its use"
    return broken_rule(node.op, [operand.type for operand in node.operands], node.attrs, node.type)


def _inner_graphs(node: Node) -> Iterator[tuple[str, Graph]]:
    """The graphs in a node's attributes, with the attribute's name."""
    for key, value in node.attrs.items():
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Graph):
                yield key, inner


def _verify_inner_graphs(node: Node, names: dict[Node, str], depth: int) -> None:
    for key, inner in _inner_graphs(node):
        if depth == MOST_NESTED:
            raise VerificationError(f"graphs are nested more than {MOST_NESTED} deep")
        try:
            _verify(inner, depth + 1)
        except VerificationError as error:
            raise VerificationError(f"in {key} of {names[node]}: {error}") from None


def verify(graph: Graph) -> None:
    """Raises VerificationError, naming the node and the rule, if the graph is not well formed."""
    require_graph("verify", graph)
    _verify(graph, 0)


def _verify(graph: Graph, depth: int) -> None:
    names = value_names(graph)
    if len({node.name for node in graph.inputs}) != len(graph.inputs):
        raise VerificationError(f"inputs must have different names, got {[node.name for node in graph.inputs]}")
    if any(node.op != INPUT for node in graph.inputs):
        raise VerificationError("an input of the graph is not an input node")
    for node in graph.inputs:
        several = "a node with several results is no input" if isinstance(node.type, TupleType) else None
        fault = several or fault_of_type(node.type)
        if fault is not None:
            raise VerificationError(f"input {node.name}: {fault}")
    defined = set(graph.inputs)
    for node in graph.nodes:
        if node in defined:
            raise VerificationError(f"{names[node]}: the node stands in the graph twice")
        _verify_inner_graphs(node, names, depth)
        broken = _broken_rule(node, defined)
        if broken is not None:
            where = f" (from {node.location})" if node.location else ""
            raise VerificationError(f"{names[node]} = {node.op}(…) : {node.type!s:.200}{where}: {broken}")
        defined.add(node)
    for position, output in enumerate(graph.outputs):
        if output not in defined:
            raise VerificationError(f"output {position} is not a value of the graph")
        if isinstance(output.type, TupleType):
            raise VerificationError(f"output {position} is {names[output]}, a node with several results: name an item")
