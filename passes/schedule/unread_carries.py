"""Loops without what they carry or stack for nobody, such as an index that takes a kernel in each turn, and without
what they stack twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, make_node, topological, with_operands
from lavax.ir.types import TupleType
from lavax.passes.schedule.results_once import with_results_once

_Any = TypeVar("_Any")
_LOOPS = frozenset(("scan", "while"))


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


@dataclass(frozen=True)
class _Read:
    """A loop with what is read alone, the positions of its operands in the loop as it was, and the positions that its
    results have in place of those that they had."""

    node: Node
    operands: tuple[int, ...]
    results: Mapping[int, int]


def without_unread(graph: Graph) -> Graph:
    """The graph whose loops carry and stack only what is read, without what was computed for the rest."""
    if _LOOPS.isdisjoint([node.op for node in graph.nodes]):
        return graph
    reads = _reads(graph)
    if all(_has_same_size(loop, read.node) for loop, read in reads.items()):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        operands = node.operands
        if node in reads:
            read = reads[node]
            kept = tuple(found[operands[position]] for position in read.operands)
            found[node] = with_operands(read.node, kept)
        elif node.op == "item" and operands[0] in reads:
            places = reads[operands[0]].results
            if node.attrs["index"] in places:
                place = places[node.attrs["index"]]
                found[node] = make_node("item", (found[operands[0]],), {"index": place}, node.type, node.location)
        elif all(operand in found for operand in operands):
            found[node] = with_operands(node, tuple(found[operand] for operand in operands))
    return with_results_once(graph_of(graph.inputs, [found[output] for output in graph.outputs]))


def _has_same_size(loop: Node, other: Node) -> bool:
    bodies = loop.attrs["body"], other.attrs["body"]
    return len(loop.operands) == len(other.operands) and len(bodies[0].outputs) == len(bodies[1].outputs)


def _reads(graph: Graph) -> dict[Node, _Read]:
    """What is read of the graph's loops, from the last one to the first."""
    reads: dict[Node, _Read] = {}
    needed = set(graph.outputs)
    items: dict[Node, set[int]] = {}
    for node in reversed(graph.nodes):
        if node not in needed:
            continue
        if node.op in _LOOPS:
            reads[node] = read = _read(node, items.get(node, ()))
            needed.update(node.operands[position] for position in read.operands)
            continue
        if node.op == "item":
            items.setdefault(node.operands[0], set()).add(node.attrs["index"])
        needed.update(node.operands)
    return reads


def _read(node: Node, results: Collection[int]) -> _Read:
    """The loop with those of its carried and stacked values alone that its results at these positions need."""
    carries, body, kept = _carries(node), node.attrs["body"], read_carries(node, results)
    stacked: dict[Node, int] = {}  # the first result of each value
    found = {position: place for place, position in enumerate(kept)}
    for position in range(carries, len(body.outputs)):
        if position in results:
            first = stacked.setdefault(body.outputs[position], position)
            found[position] = found.get(first, len(kept) + len(stacked) - 1)
    places = (*kept, *stacked.values())
    attrs, outputs = dict(node.attrs), _at(body.outputs, places)
    read = _inputs_of(body, outputs, len(body.inputs))
    if node.op == "while":
        asked = node.attrs["condition"]
        read |= _inputs_of(asked, asked.outputs, len(asked.inputs))
    given = (*kept, *(position for position in range(carries, len(node.operands)) if position in read))
    attrs["body"] = graph_of(_at(body.inputs, given), outputs)
    if node.op == "while":
        attrs["condition"] = graph_of(_at(asked.inputs, given), asked.outputs)
    else:
        attrs["carries"] = len(kept)
        attrs["sequences"] = sum(carries <= position < carries + node.attrs["sequences"] for position in given)
    assert isinstance(node.type, TupleType)
    type = TupleType(node.type.shape, node.type.dtype, _at(node.type.parts, places))
    return _Read(make_node(node.op, _at(node.operands, given), attrs, type, node.location), given, found)


def _carries(node: Node) -> int:
    return int(node.attrs["carries"]) if node.op == "scan" else len(node.attrs["body"].outputs)


def _at(values: Sequence[_Any], positions: Sequence[int]) -> tuple[_Any, ...]:
    return tuple(values[position] for position in positions)


def _inputs_of(graph: Graph, roots: Sequence[Node], carries: int) -> set[int]:
    """The positions of the first inputs, so many, that these values need."""
    needed = {*roots, *(operand for node in topological(roots, stop=graph.inputs) for operand in node.operands)}
    return {position for position, node in enumerate(graph.inputs[:carries]) if node in needed}
