"""Several turns of a scan as one, where a turn reads little of what other places of an array have come to.

A pivot's row and column are all that a turn of Gauss' elimination, or of Floyd and Warshall's ways, needs of other
places: everything else is element by element. So a kernel that computes an element after several turns computes parts
of the arrays in between, too, which are few, and stores and dispatches of several turns become those of one.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, input_node, make_node
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import add, reshaped, slice_along, splat
from lavax.passes.build.control_flow import counted_step, parts_of
from lavax.passes.build.inline import inline


@dataclass(frozen=True)
class JoinedTurns:
    """When turns may be joined. docs/performance/loop_turns_on_cpus.md, "Several turns at once"."""

    part: int = 8  # what is read of other places is this part of an array, at most
    nodes: int = 64  # of a turn
    blocks: int = 4  # of turns, at least


JOINED_TURNS = JoinedTurns()
_FAMILIES = frozenset({"elementwise", "movement", "source"})


def may_be_joined(scan: Node) -> bool:
    """Whether the node is a scan that stacks nothing, and whose turns read of what is carried an element's own place,
    and of other places few."""
    if scan.op != "scan" or len(parts_of(scan)) > scan.attrs["carries"]:
        return False
    body = scan.attrs["body"]
    if len(body.nodes) > JOINED_TURNS.nodes or not all(map(_is_plain, body.nodes)):
        return False
    carried = body.inputs[: scan.attrs["carries"]]
    whole = {node for node in carried if node.type.size >= JOINED_TURNS.part}  # values of all places
    for node in body.nodes:
        arrays = [operand for operand in node.operands if operand in whole]
        if arrays and OPERATIONS[node.op].family == "elementwise":
            whole.add(node)
        elif any(node.type.size * JOINED_TURNS.part > array.type.size for array in arrays):
            return False
    return bool(whole)


def _is_plain(node: Node) -> bool:
    return node.op == "gather" or OPERATIONS[node.op].family in _FAMILIES


def with_turns_joined(scan: Node, turns: int) -> Node | None:
    """The scan with so many turns as one, without the first of its turns that are left over (`body_of_turns`); its
    sequences are rows of as many rows. None if its turns are too few, or if some are left over and it has sequences."""
    length, carries, sequences = (scan.attrs[name] for name in ("length", "carries", "sequences"))
    blocks, rest = divmod(length, turns)
    if blocks < JOINED_TURNS.blocks or (rest and sequences):
        return None
    operands = [
        _of_rows(node, (blocks, turns, *node.shape[1:])) if carries <= position < carries + sequences else node
        for position, node in enumerate(scan.operands)
    ]
    attrs = {**scan.attrs, "length": blocks, "body": body_of_turns(scan, turns)}
    return make_node("scan", operands, attrs, scan.type, scan.location)


def body_of_turns(scan: Node, turns: int) -> Graph:
    """The scan's body so many times, one after the other; each of its inputs that is a sequence's row is as many."""
    body, carries, sequences = (scan.attrs[name] for name in ("body", "carries", "sequences"))
    first, last = carries, carries + sequences
    inputs = [
        _of_rows(node, (turns, *node.shape)) if first <= position < last else node
        for position, node in enumerate(body.inputs)
    ]
    order = range(turns)[::-1] if scan.attrs["reverse"] else range(turns)
    carried: Sequence[Node] = inputs[:first]
    for number, turn in enumerate(order, 1):
        rows = [reshaped(slice_along(node, 0, turn, turn + 1), node.shape[1:]) for node in inputs[first:last]]
        after = inline(body, [*carried, *rows, *inputs[last:]])
        carried = [_counted(body, position, number) or after[position] for position in range(first)]
    return graph_of(inputs, carried)


def _of_rows(node: Node, shape: tuple[int, ...]) -> Node:
    return input_node(node.name, node.type.with_shape(shape))


def _counted(body: Graph, position: int, turns: int) -> Node | None:
    """A number that each turn counts up, after so many turns; None if it is no such number."""
    number, step = body.inputs[position], counted_step(body, position)
    if step is None or abs(step * turns) >= 1 << 31:
        return None
    return add(number, splat(step * turns, number.type))
