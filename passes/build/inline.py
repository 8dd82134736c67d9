"""Replaces calls by their bodies: derivatives have been taken by now, and kernels consist of plain operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.ir.graph import Graph, Node, graph_of, make_node, substitute, with_operands

CALLS = frozenset({"checkpoint", "custom_jvp", "custom_vjp", "custom_vmap"})


def inline(graph: Graph, operands: Sequence[Node]) -> list[Node]:
    """The outputs of `graph` on `operands`, one per input."""
    found = substitute(graph, dict(zip(graph.inputs, operands, strict=True)))
    return [found[output] for output in graph.outputs]


def inline_calls(graph: Graph) -> Graph:
    """The graph without calls, in bodies of control flow too; the same object if there are none."""
    if not _holds_calls(graph):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    results: dict[Node, list[Node]] = {}  # call -> the values of its body
    for node in graph.nodes:
        body = _body_of_call(node)
        if body is not None:
            operands = [found[operand] for operand in node.operands[len(node.operands) - len(body.inputs) :]]
            results[node] = inline(inline_calls(body), operands)
        elif node.op == "item" and node.operands[0] in results:
            found[node] = results[node.operands[0]][node.attrs["index"]]
        else:
            found[node] = _rebuilt(node, tuple([found[operand] for operand in node.operands]), inline_calls)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def with_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """The graph with `change` applied to the graphs in its nodes' attributes; the same object if there are none."""
    if not any(node.attrs and inner_graphs(node) for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        found[node] = _rebuilt(node, tuple([found[operand] for operand in node.operands]), change)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _body_of_call(node: Node) -> Graph | None:
    """The graph that certainly computes the node's results: the body of a call, or the only branch of a switch."""
    body: Graph | None = None
    if node.op in CALLS:
        body = node.attrs["body"]
    elif node.op == "switch" and len(node.attrs["branches"]) == 1:
        (body,) = node.attrs["branches"]
    return body


def _rebuilt(node: Node, operands: tuple[Node, ...], change: Callable[[Graph], Graph]) -> Node:
    """The node with these operands, and `change` applied to the graphs in its attributes."""
    if not node.attrs or not inner_graphs(node):
        return with_operands(node, operands)
    attrs = {name: _changed(value, change) for name, value in node.attrs.items()}
    return make_node(node.op, operands, attrs, node.type, node.location)


def _changed(value: Any, change: Callable[[Graph], Graph]) -> Any:
    if isinstance(value, Graph):
        return change(value)
    if isinstance(value, tuple):
        return tuple([_changed(part, change) for part in value])
    return value


def inner_graphs(node: Node) -> list[Graph]:
    """The graphs in the node's attributes."""
    found: list[Graph] = []
    for value in node.attrs.values():
        if isinstance(value, Graph):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, Graph)]
    return found


def _holds_calls(graph: Graph) -> bool:
    nodes = [node for node in graph.nodes if node.attrs]
    return any(_body_of_call(node) is not None or any(map(_holds_calls, inner_graphs(node))) for node in nodes)
