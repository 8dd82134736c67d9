"""Loops on top of each other that take their turns together, such as the layers of a recurrent network.

A layer's turn reads the same turn's row of the layer below, and not what comes later. So while one layer takes a block
of turns, the layer above takes the block before: two layers of T turns are T turns and a block in a row, and not 2 T.

    first    0 1 2 3
    second     0 1 2 3
    third        0 1 2 3

What lies between two loops is computed row by row, a block at a time (row_blocks.py). This is what loops of dispatches
need: a turn of few rows leaves most of a device idle, and waits longer than it computes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, topological, with_operands
from lavax.passes.build.control_flow import control_flow, item
from lavax.passes.schedule.rotated_turns import halves_of
from lavax.passes.schedule.row_blocks import rows_of_block
from lavax.passes.schedule.unrolled_scan import may_be_recorded
from lavax.passes.target.target import Loops


@dataclass(frozen=True)
class Wavefronts:
    """The loops that take their turns together. Exercised by `python -m benchmarks architectures`."""

    loops: int = 4  # at most: each is recorded once for each of these, and twice more
    blocks: int = 4  # at least, unless blocks have the fewest turns
    fewest_turns: int = 8  # of a block


WAVEFRONTS = Wavefronts()


def turns_of_block(length: int, loops: Loops) -> int:
    """The turns of a block of loops of this length; 0 if these are too short."""
    turns = loops.turns
    while turns > WAVEFRONTS.fewest_turns and turns * WAVEFRONTS.blocks > length:
        turns //= 2
    return turns if turns * WAVEFRONTS.blocks <= length else 0


def with_wavefronts(graph: Graph, loops: Loops) -> Graph:
    """The graph with such loops in one node each."""
    if not loops.side_by_side or sum(node.op == "scan" for node in graph.nodes) < 2:
        return graph
    while group := next(iter(_groups(graph, loops)), None):
        graph = _joined(graph, group)
    return graph


# -- which loops -----------------------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Loops on top of each other, in order; what lies `between` them, and the values that this `read`s; all that is
    computed `after` one of the loops."""

    scans: list[Node]
    after: set[Node]
    between: dict[Node, None] = field(default_factory=dict)
    read: dict[Node, None] = field(default_factory=dict)


def _groups(graph: Graph, loops: Loops) -> list[_Group]:
    """The groups of loops, which share none."""
    found: list[_Group] = []
    for node in graph.nodes:
        if node.op != "scan" or not _suits(node, loops):
            continue
        group = next((group for group in found if _join(graph, group, node, loops)), None)
        if group is None:
            found.append(_Group([node], _computed_from(graph, [node])))
    return [group for group in found if len(group.scans) > 1]


def _suits(scan: Node, loops: Loops) -> bool:
    """Whether a loop's turns are recorded, and it has a product, so that it is no loop of lanes."""
    if not may_be_recorded(scan, loops) or not turns_of_block(scan.attrs["length"], loops):
        return False
    has_product = any(node.op == "dot" for node in scan.attrs["body"].nodes)
    return has_product and not loops.slices(scan)


def _join(graph: Graph, group: _Group, scan: Node, loops: Loops) -> bool:
    """Adds a loop to the group if it goes through rows of the group's loops, and reads nothing else of them."""
    first = group.scans[0]
    alike = all(scan.attrs[name] == first.attrs[name] for name in ("length", "reverse"))
    if scan not in group.after or not alike or len(group.scans) == WAVEFRONTS.loops:
        return False
    if (halves_of(scan, loops) is None) != (halves_of(first, loops) is None):
        return False
    before = {*topological([scan])}
    made = {node: None for node in graph.nodes if node in before and node in group.after and node is not scan}
    between = {node: None for node in made if not _is_item_of(node, group.scans)}
    carries = scan.attrs["carries"]
    sequences = scan.operands[carries : carries + scan.attrs["sequences"]]
    others = (*scan.operands[:carries], *scan.operands[carries + len(sequences) :])
    if any(node in made for node in others) or any(node.op == "scan" for node in made if node not in group.scans):
        return False
    wanted = [node for node in dict.fromkeys(sequences) if node in between]
    length = scan.attrs["length"]
    rows = rows_of_block(wanted, between, length, turns_of_block(length, loops))
    if rows is None or any(node in made for node in rows.whole):
        return False
    read = [node for node in (*rows.given, *sequences) if node in made and node not in between]
    if not all(_has_early_rows(node, loops) for node in read):
        return False
    group.scans.append(scan)
    group.between |= between
    group.read |= dict.fromkeys((*rows.given, *rows.whole))
    group.after |= _computed_from(graph, [scan])
    return True


def _is_item_of(node: Node, scans: Collection[Node]) -> bool:
    return node.op == "item" and node.operands[0] in scans


def _has_early_rows(result: Node, loops: Loops) -> bool:
    """Whether a result of a loop is stacked, and a turn's row is there when the loop's block is done."""
    scan, index = result.operands[0], result.attrs["index"]
    halves = halves_of(scan, loops)
    return index >= scan.attrs["carries"] if halves is None else index in halves.early


def _computed_from(graph: Graph, roots: Sequence[Node]) -> set[Node]:
    """The values that are computed from the roots."""
    found = set(roots)
    for node in graph.nodes:
        if not found.isdisjoint(node.operands):
            found.add(node)
    return found.difference(roots)


# -- as one node -----------------------------------------------------------------------------------------------------


def _joined(graph: Graph, group: _Group) -> Graph:
    """The graph with a group's loops in one node. What else lies between them, and others read, is computed again."""
    inside = {*group.scans, *group.between, *(node for node in graph.nodes if _is_item_of(node, group.scans))}
    gone_through = {operand for scan in group.scans for operand in scan.operands}
    outputs, wanted, again = frozenset(graph.outputs), list[Node](), set[Node]()
    for node in reversed(graph.nodes):
        users = graph.users.get(node, ())
        if node not in inside or node in group.scans:
            continue
        if node in outputs or any(user not in inside or user in again for user in users):
            is_result = node not in group.between or node in gone_through or node.op == "dot"
            wanted.append(node) if is_result else again.add(node)
    outside = [operand for scan in group.scans for operand in scan.operands if operand not in inside]
    operands = list(dict.fromkeys((*outside, *(node for node in group.read if node not in inside))))
    whole = control_flow("wavefront", operands, [node.type for node in wanted], body=_body(operands, wanted))
    found = {node: node for node in graph.inputs} | {node: item(whole, n) for n, node in enumerate(wanted)}
    found |= {scan: scan for scan in group.scans}
    for node in graph.nodes:
        if node not in found:
            known = node not in group.after
            found[node] = node if known else with_operands(node, tuple(found[operand] for operand in node.operands))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _body(operands: Sequence[Node], wanted: Sequence[Node]) -> Graph:
    """The loops and what lies between them, from the operands."""
    inputs = further_inputs("given", (node.type for node in operands), ())
    found = dict(zip(operands, inputs, strict=True))
    for node in topological(wanted, stop=operands):
        found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    return graph_of(inputs, [found[node] for node in wanted])
