"""Tables: arrays that a loop in registers carries, but only reads and updates at computed places.

They stay in memory, so that their size costs nothing. An update changes the table where it is; so whatever reads a
table must come before its next update, which `in_order` sees to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.ops.indexing import SCATTERS
from lavax.passes.build.control_flow import parts_of


@dataclass(frozen=True)
class TableLimits:
    """Which arrays are tables. Checked by `python -m benchmarks loops`."""

    least: int = 96  # elements: fewer are found in registers sooner
    most: int = 1 << 17  # one subgroup copies it before the loop
    copied: int = 8  # elements at once
    updates: int = 4  # at once, each of which is written out


TABLES = TableLimits()


def tables_of(loop: Node) -> frozenset[int]:
    """The positions of what a loop carries as tables."""
    carries = loop.attrs["carries"] if loop.op == "scan" else len(parts_of(loop))
    found = []
    for position in range(carries):
        if TABLES.least < loop.operands[position].type.size <= TABLES.most and _is_carried_as_table(loop, position):
            found.append(position)
    body: Graph = loop.attrs["body"]
    return frozenset(found) if _has_order(body, [body.inputs[position] for position in found]) else frozenset()


def _has_order(graph: Graph, tables: Sequence[Node]) -> bool:
    """Whether there is an order of a body with these tables, and of those of all loops inside that have one of them."""
    versions = {each for table in tables for each in (table, *(new for *_, new in _updates(graph.users, table)))}
    for loop in graph.nodes:
        if loop.op == "scan":
            pairs = zip(loop.operands, loop.attrs["body"].inputs, strict=True)
            own = [inside for operand, inside in pairs if operand in versions]
            if own and not _has_order(loop.attrs["body"], own):
                return False
    return in_order(graph, tables) is not None


def iterations_of_copies(loop: Node) -> int:
    """Iterations of the loops that copy the tables before the first turn, at most."""
    return sum(loop.operands[position].type.size // TABLES.copied + 1 for position in tables_of(loop))


def in_order(graph: Graph, tables: Iterable[Node]) -> Sequence[Node] | None:
    """The nodes with each update of a table behind whatever reads it before; None if there is no such order."""
    readers, position = graph.users, graph.position
    earlier = {node: {operand for operand in node.operands if operand in position} for node in graph.nodes}
    for table in tables:
        for version, update, _ in _updates(readers, table):
            earlier[update] |= {reader for reader in readers.get(version, ()) if reader is not update}
    return _sorted(graph, earlier)


def _sorted(graph: Graph, earlier: Mapping[Node, set[Node]]) -> Sequence[Node] | None:
    """The nodes behind those that come earlier, else in the order that they have."""
    nodes, numbers = graph.nodes, graph.position
    waiting = {node: len(before) for node, before in earlier.items()}
    later: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node, before in earlier.items():
        for other in before:
            later[other].append(node)
    ready = [numbers[node] for node in nodes if not waiting[node]]
    heapify(ready)
    found: list[Node] = []
    while ready:
        node = nodes[heappop(ready)]
        found.append(node)
        for other in later[node]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, numbers[other])
    return found if len(found) == len(nodes) else None


def _is_carried_as_table(loop: Node, position: int) -> bool:
    body: Graph = loop.attrs["body"]
    readers, version = body.users, body.inputs[position]
    versions = [version, *(following for _, _, following in _updates(readers, version))]
    others = [reader for each in versions for reader in readers.get(each, ()) if not _reads_places(reader, each)]
    is_updated = len(versions) > 1 and len(others) == len(versions) - 1  # nothing else needs one of them whole
    is_result = [output for output in body.outputs if output in versions] == [body.outputs[position]] == versions[-1:]
    asked = loop.op == "scan" or _is_read_by_places(loop.attrs["condition"], position)
    return is_updated and is_result and asked


def _updates(readers: Mapping[Node, Sequence[Node]], table: Node) -> Iterable[tuple[Node, Node, Node]]:
    """A table's versions one after the other: each, the node that updates it, and the next version."""
    while True:
        changing = [reader for reader in readers.get(table, ()) if not _reads_places(reader, table)]
        if len(changing) != 1:
            return
        (node,) = changing
        following = _version_behind(readers, node, table)
        if following is None:
            return
        yield table, node, following
        table = following


def _version_behind(readers: Mapping[Node, Sequence[Node]], node: Node, table: Node) -> Node | None:
    """The table as the node leaves it; None if the node does something else with it than to update it."""
    if list(node.operands).count(table) != 1:
        return None
    position = node.operands.index(table)
    if node.op in SCATTERS:
        return node if position == 0 and node.operands[2].type.size <= TABLES.updates else None
    if node.op != "scan" or position >= node.attrs["carries"] or not _is_carried_as_table(node, position):
        return None
    items = [item for item in readers.get(node, ()) if item.attrs["index"] == position]
    return items[0] if len(items) == 1 else None


def _reads_places(node: Node, table: Node) -> bool:
    """Whether a node needs only elements of a table whose places are computed."""
    if node.op == "gather":
        return node.operands[0] is table and table not in node.operands[1:]
    if node.op != "scan":
        return False
    first = node.attrs["carries"] + node.attrs["sequences"]
    positions = [position for position, operand in enumerate(node.operands) if operand is table]
    return min(positions) >= first and all(_is_read_by_places(node.attrs["body"], each) for each in positions)


def _is_read_by_places(graph: Graph, position: int) -> bool:
    table = graph.inputs[position]
    readers = graph.users.get(table, ())
    return table not in graph.outputs and all(_reads_places(reader, table) for reader in readers)
