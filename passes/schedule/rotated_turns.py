"""Scans each of whose turns begins element by element and ends with products, such as the gradient of a recurrent cell.

A kernel of products computes what follows them, but not what comes before: each of its workgroups would repeat it. So a
turn of the gradient takes a dispatch for what the gates' gradients are, and one for the product of these. Between one
turn's product and the next turn's gates is nothing but elements, so turns are recorded from product to product:

    first half of turn 0; (second half of turn t, first half of turn t + 1) for each t; second half of the last turn
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, topological, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.numerics.narrow_movement import is_widening
from lavax.passes.schedule.unrolled_scan import may_be_recorded
from lavax.passes.target.target import Loops

_FAMILIES = frozenset(("elementwise", "movement", "source", "reduction", "contraction"))


@dataclass(frozen=True)
class RotatedTurns:
    """The scans whose turns are recorded from product to product. Exercised by `python -m benchmarks architectures`."""

    handed: int = 8  # values that the first half of a turn hands to the second, at most
    nbytes: int = 1 << 20  # of each


ROTATED_TURNS = RotatedTurns()


@dataclass(frozen=True)
class Halves:
    """The two halves of a body's turn, each from the body's inputs.

    `handed`: values of the first half, or of what is carried, that the second half reads or carries on. `early` and
    `late` are the positions of stacked results that the first and the second half compute.
    """

    body: Graph
    carries: int
    sequences: int
    handed: tuple[Node, ...]
    early: tuple[int, ...]
    late: tuple[int, ...]

    @property
    def first(self) -> Graph:
        """Of the body's inputs: what is handed on, then what is stacked early."""
        return graph_of(self.body.inputs, [*self.handed, *(self.body.outputs[p] for p in self.early)])

    def second(self) -> Graph:
        """Of what is handed on, the turn's rows of sequences and what is read: what is carried, then what is stacked
        late."""
        held, now = self._held(), self._rows("now")
        found = self._computed(self._late_results, {**held, **now})
        return graph_of([*held.values(), *now.values(), *self._unchanging], found)

    def between(self) -> Graph:
        """The second half of a turn and the first of the next, of what is handed on, the rows that sequences have for
        both and what is read: what is handed on, what the next turn stacks early, and what this one stacks late."""
        held, now, following = self._held(), self._rows("now"), self._rows("next")
        found = self._computed(self._late_results, {**held, **now})
        carried = dict(zip(self.body.inputs[: self.carries], found[: self.carries], strict=True))
        first = self.first.outputs
        made = self._computed(first, {**carried, **following})
        inputs = (*held.values(), *now.values(), *following.values(), *self._unchanging)
        return graph_of(inputs, [*made, *found[self.carries :]])

    @property
    def _late_results(self) -> list[Node]:
        return [*self.body.outputs[: self.carries], *(self.body.outputs[p] for p in self.late)]

    @property
    def _unchanging(self) -> Sequence[Node]:
        return self.body.inputs[self.carries + self.sequences :]

    def _held(self) -> dict[Node, Node]:
        made = further_inputs("held", (node.type for node in self.handed), self.body.inputs)
        return dict(zip(self.handed, made, strict=True))

    def _rows(self, name: str) -> dict[Node, Node]:
        rows = self.body.inputs[self.carries : self.carries + self.sequences]
        return dict(zip(rows, further_inputs(name, (row.type for row in rows), self.body.inputs), strict=True))

    def _computed(self, wanted: Sequence[Node], known: Mapping[Node, Node]) -> list[Node]:
        """The values, from those that are known and what is the same in all turns."""
        found = {node: node for node in self._unchanging} | dict(known)
        for node in topological(wanted, stop=found):
            if node not in found:
                found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
        return [found[node] for node in wanted]


def halves_of(scan: Node, loops: Loops) -> Halves | None:
    """The halves of a turn; None if it has no products, or nothing is computed before them."""
    if not may_be_recorded(scan, loops):
        return None
    body, carries = scan.attrs["body"], int(scan.attrs["carries"])
    dots = [node for node in body.nodes if node.op == "dot"]
    if not dots or not all(map(loops.are_gates, dots)):
        return None
    if any(OPERATIONS[node.op].family not in _FAMILIES or node.op == "conv" for node in body.nodes):
        return None
    given = body.inputs[:carries]
    if not all(node.dtype.is_float for node in given):
        return None
    late, moving = _made_of(body, dots), _made_of(body, given)
    before = [node for node in topological([x for dot in dots for x in dot.operands]) if node not in late]
    if not any(node in moving and OPERATIONS[node.op].family == "elementwise" and node.op != "cast" for node in before):
        return None
    read = [operand for node in body.nodes if node in late for operand in node.operands]
    read += [output for output in body.outputs[:carries] if output not in late]
    handed = tuple(dict.fromkeys(_as_stored(node) for node in read if node in moving and node not in late))
    most = ROTATED_TURNS.handed, ROTATED_TURNS.nbytes
    if len(handed) > most[0] or any(node.type.nbytes > most[1] for node in handed):
        return None
    stacked = range(carries, len(body.outputs))
    by_late = tuple(p for p in stacked if body.outputs[p] in late)
    early = tuple(p for p in stacked if body.outputs[p] not in late)
    return Halves(body, carries, int(scan.attrs["sequences"]), handed, early, by_late)


def _as_stored(node: Node) -> Node:
    """What is handed on in place of a value that is only wider: the second half widens it."""
    while is_widening(node):
        (node,) = node.operands
    return node


def _made_of(body: Graph, roots: Iterable[Node]) -> set[Node]:
    """The roots, and what is computed from them."""
    found = {*roots}
    for node in body.nodes:
        if not found.isdisjoint(node.operands):
            found.add(node)
    return found
