"""Loops without what they carry for nobody: an index that no turn and no result needs takes a kernel in each turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from lavax.ir.graph import Graph, Node, graph_of, make_node, topological
from lavax.ir.types import TupleType

_Any = TypeVar("_Any")


def read_carries(node: Node, results: Iterable[int]) -> list[int]:
    """The positions of carried values that a loop's results at these positions depend on, in one turn or in several."""
    body, carries = node.attrs["body"], _carries(node)
    results = [*results]
    roots = [body.outputs[position] for position in results]
    if node.op == "while":
        asked = node.attrs["condition"]
        live = _inputs_of(asked, asked.outputs, carries)
    else:
        live = set()
    live |= {position for position in results if position < carries}
    while True:
        roots += [body.outputs[position] for position in live]
        more = live | _inputs_of(body, roots, carries)
        if more == live:
            return sorted(live)
        live = more


def with_carries(node: Node, kept: Sequence[int]) -> Node:
    """The loop with those of its carried values alone."""
    carries, body = _carries(node), node.attrs["body"]
    attrs = dict(node.attrs)
    attrs["body"] = graph_of(_kept(body.inputs, kept, carries), _kept(body.outputs, kept, carries))
    if node.op == "while":
        asked = node.attrs["condition"]
        attrs["condition"] = graph_of(_kept(asked.inputs, kept, carries), asked.outputs)
    else:
        attrs["carries"] = len(kept)
    assert isinstance(node.type, TupleType)
    parts = _kept(node.type.parts, kept, carries)
    operands = _kept(node.operands, kept, carries)
    return make_node(node.op, operands, attrs, TupleType(node.type.shape, node.type.dtype, parts), node.location)


def places_of(node: Node, kept: Sequence[int], results: Mapping[int, str]) -> dict[int, str]:
    """The names of results, by their positions among those of the loop that carries the kept values alone."""
    places = _kept(tuple(range(len(node.attrs["body"].outputs))), kept, _carries(node))
    return {place: results[position] for place, position in enumerate(places) if position in results}


def operands_of(node: Node, kept: Sequence[int], operands: tuple[str, ...]) -> tuple[str, ...]:
    """The names of its operands."""
    return _kept(operands, kept, _carries(node))


def _carries(node: Node) -> int:
    return int(node.attrs["carries"]) if node.op == "scan" else len(node.attrs["body"].outputs)


def _kept(values: Sequence[_Any], kept: Sequence[int], carries: int) -> tuple[_Any, ...]:
    return (*(values[position] for position in kept), *values[carries:])


def _inputs_of(graph: Graph, roots: Sequence[Node], carries: int) -> set[int]:
    """The positions of the first inputs, so many, that these values need."""
    needed = {*roots, *(operand for node in topological(roots, stop=graph.inputs) for operand in node.operands)}
    return {position for position, node in enumerate(graph.inputs[:carries]) if node in needed}
