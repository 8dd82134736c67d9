"""Writes of one number where a mask says so, which exporters spell with the places that the mask shows.

`ScatterND(x, Transpose(NonZero(mask)), Expand(number, count))` has places whose count depends on data. The result does
not: it is `Where(mask, number, x)`.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import lavax.numpy as lnp
from lavax.onnx.operators.operator import Call, Operator, converted
from lavax.onnx.reading.graph import Graph, Node

_DOMAIN = "lavax"


def _masked_write(call: Call, x: Any, mask: Any, number: Any) -> Any:
    wide = lnp.reshape(lnp.asarray(mask) != 0, (*mask.shape, *[1] * (x.ndim - mask.ndim)))
    return lnp.where(wide, converted(number.reshape(()), x.dtype), x)


ENTRY = Operator("MaskedWrite", _masked_write, domain=_DOMAIN)
OWN = {(ENTRY.domain, ENTRY.name): ENTRY}


def with_masked_writes(graph: Graph) -> Graph:
    """The graph with each such write as one node, and without what only led to it."""
    made = {name: node for node in graph.nodes for name in node.outputs}
    nodes = [_whole(node, made, graph.initializers) for node in graph.nodes]
    if all(new is old for new, old in zip(nodes, graph.nodes, strict=True)):
        return graph
    used, kept = set(graph.output_names), []
    for node in reversed(nodes):
        if not used.isdisjoint(node.outputs):
            kept.append(node)
            used.update(_read_by(node))
    return replace(graph, nodes=tuple(kept[::-1]))


def _whole(node: Node, made: Mapping[str, Node], tensors: Mapping[str, Any]) -> Node:
    if (node.domain, node.operator) != ("", "ScatterND") or node.attributes.get("reduction", "none") != "none":
        return node
    turned = _made(made, node.inputs[1], "Transpose")
    if turned is None or tuple(turned.attributes.get("perm", (1, 0))) != (1, 0):
        return node
    found = _made(made, turned.inputs[0], "NonZero")
    number = _repeated(node.inputs[2], made, tensors)
    if found is None or number is None:
        return node
    return replace(
        node, domain=_DOMAIN, operator=ENTRY.name, inputs=(node.inputs[0], found.inputs[0], number), attributes={}
    )


def _repeated(name: str, made: Mapping[str, Node], tensors: Mapping[str, Any]) -> str | None:
    """The one known number that a value repeats, if it does."""
    is_repeated = False
    while source := _made(made, name, "Expand", "Reshape", "Identity"):
        is_repeated |= source.operator == "Expand"
        name = source.inputs[0]
    if not is_repeated:
        return None
    constant = _made(made, name, "Constant")
    value = tensors.get(name) if constant is None else constant.attributes.get("value")
    return name if value is not None and prod(value.shape) == 1 else None


def _made(made: Mapping[str, Node], name: str, *operators: str) -> Node | None:
    """The node that makes a value, if it is of one of these operators."""
    node = made.get(name)
    return node if node is not None and not node.domain and node.operator in operators else None


def _read_by(node: Node) -> Iterator[str]:
    """The names that a node and the graphs in it read."""
    yield from node.inputs
    for graph in node.graphs:
        yield from graph.output_names
        for inner in graph.nodes:
            yield from _read_by(inner)
