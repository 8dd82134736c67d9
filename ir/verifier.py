"""Checks that a graph obeys every rule of the intermediate representation."""
from __future__ import annotations

from lavax.base.errors import DtypeError, ShapeError, VerificationError
from lavax.ir.graph import INPUT, Graph, Node, require_graph
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import value_names
from lavax.ir.types import TupleType


def _broken_rule(node: Node, defined: set[Node]) -> str | None:
    if node.op not in OPERATIONS:
        return f"unknown operation {node.op!r}"
    operation = OPERATIONS[node.op]
    if any(operand not in defined for operand in node.operands):
        return "an operand is not defined before its use"
    if set(node.attrs) != set(operation.attributes):
        return f"attributes must be {list(operation.attributes)}, got {list(node.attrs)}"
    try:
        inferred = operation.infer([operand.type for operand in node.operands], node.attrs, node.type)
    except (ShapeError, DtypeError) as error:
        return str(error)
    except (TypeError, ValueError, KeyError, IndexError) as error:
        return f"an attribute is outside its domain: {error}"
    if inferred != node.type:
        return f"the type must be {inferred}"
    if node.op != "item" and any(isinstance(operand.type, TupleType) for operand in node.operands):
        return "only item reads a node with several results"
    return None


def _verify_inner_graphs(node: Node, names: dict[Node, str]) -> None:
    for key, value in node.attrs.items():
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, Graph):
                try:
                    verify(inner)
                except VerificationError as error:
                    raise VerificationError(f"in {key} of {names[node]}: {error}") from None


def verify(graph: Graph) -> None:
    """Raises VerificationError, naming the node and the rule, if the graph is not well formed."""
    require_graph("verify", graph)
    names = value_names(graph)
    if len({node.name for node in graph.inputs}) != len(graph.inputs):
        raise VerificationError(f"inputs must have different names, got {[node.name for node in graph.inputs]}")
    if any(node.op != INPUT for node in graph.inputs):
        raise VerificationError("an input of the graph is not an input node")
    defined = set(graph.inputs)
    for node in graph.nodes:
        if node in defined:
            raise VerificationError(f"{names[node]}: the node stands in the graph twice")
        _verify_inner_graphs(node, names)
        broken = _broken_rule(node, defined)
        if broken is not None:
            where = f" (from {node.location})" if node.location else ""
            raise VerificationError(f"{names[node]} = {node.op}(…) : {node.type}{where}: {broken}")
        defined.add(node)
    for position, output in enumerate(graph.outputs):
        if output not in defined:
            raise VerificationError(f"output {position} is not a value of the graph")
