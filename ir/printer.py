"""Graph -> text, one line per node, the same on every run and machine."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.batching_function import BatchingFunction
from lavax.ir.exact_text import exact_text
from lavax.ir.graph import Graph, LaterGraph, Node
from lavax.ir.host_function import HostFunction
from lavax.ir.location import line_and_scope
from lavax.ir.operation import OPERATIONS

_INTEGERS = frozenset((int,))
_NEVER = object()  # equal to no attribute


def value_names(graph: Graph) -> dict[Node, str]:
    """The name of each value in the text."""
    names = {node: node.name for node in graph.inputs}
    names.update((node, f"%{number}") for number, node in enumerate(graph.nodes))
    return names


def _is_pair(value: tuple[Any, ...]) -> bool:
    return len(value) == 2 and all(isinstance(part, tuple) for part in value)


def format_attribute(value: Any) -> str:
    """An attribute's text: `3`, `2.5`, `true`, `"name"`, `[0,1]`, `[1]x[0]` for axes of two operands, or a graph."""
    if isinstance(value, tuple):
        if _INTEGERS.issuperset(map(type, value)):
            return f"[{','.join(map(str, value))}]"
        parts = map(format_attribute, value)
        return "x".join(parts) if _is_pair(value) else f"[{','.join(parts)}]"
    if isinstance(value, Graph):
        return print_graph(value)
    if isinstance(value, LaterGraph):
        return f'"{value.text}"'
    if isinstance(value, (BatchingFunction, HostFunction)):
        return f'"{value}"'
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return exact_text(value)
    if isinstance(value, complex):
        return repr(value)
    raise TypeError(f"an attribute cannot be {value!r}")


def format_node(node: Node, names: dict[Node, str]) -> str:
    """One line: `%1 = tanh(%0) : f32[2]`; the text of a node that holds graphs includes theirs."""
    return f"{names[node]} = {_computation(node, names)} : {node.type}"


def _computation(node: Node, names: dict[Node, str]) -> str:
    operands, shown = ", ".join([names[operand] for operand in node.operands]), shown_attributes(node)
    if not shown:
        return f"{node.op}({operands})"
    return f"{node.op}({operands}){''.join([f' {key}={format_attribute(node.attrs[key])}' for key in shown])}"


def shown_attributes(node: Node) -> Sequence[str]:
    """The attributes that differ from their defaults: a dot without batch axes does not mention them."""
    operation = OPERATIONS[node.op]
    if not operation.defaults:
        return operation.attributes
    return [key for key in operation.attributes if node.attrs[key] != operation.defaults.get(key, _NEVER)]


def structural_key(graph: Graph) -> str:
    """A text that is equal for two graphs exactly if they have the same nodes; names of inputs do not matter.

    Kept with the graph: the passes that put kernels into dispatches ask for it, and so does emission.
    """
    if not graph._structure:
        graph._structure.append(_written_structure(graph))
    return graph._structure[0]


def _written_structure(graph: Graph) -> str:
    names = value_names(graph)
    names.update((node, f"i{number}") for number, node in enumerate(graph.inputs))
    types = {id(node.type): node.type for node in (*graph.inputs, *graph.nodes)}  # many nodes have the same one
    texts = {name: str(type) for name, type in types.items()}
    lines = [f"{names[node]}:{texts[id(node.type)]}" for node in graph.inputs]
    lines += [f"{names[node]} = {_computation(node, names)} : {texts[id(node.type)]}" for node in graph.nodes]
    lines += [names[output] for output in graph.outputs]
    return "\n".join(lines)


def _comment(node: Node) -> str:
    """The named scope of a node, if it has one."""
    scope = line_and_scope(node.location)[1] if node.location else ""
    return f"  # {scope}" if scope else ""


def print_graph(graph: Graph, indent: str = "") -> str:
    """The text of a graph, with named scopes as comments; `parse` reads it back."""
    names = value_names(graph)
    inputs = ", ".join(f"{node.name}: {node.type}" for node in graph.inputs)
    lines = [f"graph ({inputs}) {{"]
    lines += [f"  {line}" for node in graph.nodes for line in f"{format_node(node, names)}{_comment(node)}".split("\n")]
    lines += [f"  return {', '.join(names[output] for output in graph.outputs)}".rstrip(), "}"]
    return "\n".join(indent + line for line in lines)
