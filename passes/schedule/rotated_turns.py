"""Scans each of whose turns begins element by element and ends with products, such as the gradient of a recurrent cell.

A kernel of products computes what follows them, but not what comes before: each of its workgroups would repeat it. So a
turn of the gradient takes a dispatch for what the gates' gradients are, and one for the product of these. Between one
turn's product and the next turn's gates is nothing but elements, so turns are recorded from product to product:

    first half of turn 0; (second half of turn t, first half of turn t + 1) for each t; second half of the last turn

`with_factors_apart` prepares such scans: gates that are joined before the product are products of each, added up, and
are stacked each for itself, because one kernel writes values of one shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, make_node, topological, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import float32, tuple_of
from lavax.passes.build.builder import add, build, cast, concatenate, slice_along
from lavax.passes.build.control_flow import item, parts_of
from lavax.passes.schedule.unrolled_scan import may_be_recorded
from lavax.passes.target.kernel_limits import MOST_GATES
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
    handed = tuple(dict.fromkeys(node for node in read if node in moving and node not in late))
    most = ROTATED_TURNS.handed, ROTATED_TURNS.nbytes
    if len(handed) > most[0] or any(node.type.nbytes > most[1] for node in handed):
        return None
    stacked = range(carries, len(body.outputs))
    by_late = tuple(p for p in stacked if body.outputs[p] in late)
    early = tuple(p for p in stacked if body.outputs[p] not in late)
    return Halves(body, carries, int(scan.attrs["sequences"]), handed, early, by_late)


def _made_of(body: Graph, roots: Iterable[Node]) -> set[Node]:
    """The roots, and what is computed from them."""
    found = {*roots}
    for node in body.nodes:
        if not found.isdisjoint(node.operands):
            found.add(node)
    return found


# -- joined factors ----------------------------------------------------------------------------------------------------


def with_factors_apart(graph: Graph, loops: Loops) -> Graph:
    """The graph whose rotated scans multiply and stack values for themselves that were joined before."""
    if not any(node.op == "scan" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    places: dict[Node, list[tuple[int, ...]]] = {}  # of a new scan: where the results of the old one are
    for node in graph.nodes:
        if node.op == "item" and node.operands[0] in places:
            loop = found[node.operands[0]]
            parts = [item(loop, place) for place in places[node.operands[0]][node.attrs["index"]]]
            found[node] = parts[0] if len(parts) == 1 else concatenate(parts, node.type.rank - 1)
            continue
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        if node.op == "scan" and (apart := _apart(built, loops)) is not None:
            built, places[node] = apart
        found[node] = built
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if places else graph


def _apart(scan: Node, loops: Loops) -> tuple[Node, list[tuple[int, ...]]] | None:
    if halves_of(scan, loops) is None:
        return None
    body, carries = scan.attrs["body"], scan.attrs["carries"]
    joined = {dot: parts for dot in body.nodes if dot.op == "dot" and (parts := _parts_of_factor(dot))}
    if not joined:
        return None
    found: dict[Node, Node] = {node: node for node in body.inputs}
    for node in body.nodes:
        if node in joined:
            found[node] = _in_parts(node, [found[part] for part in joined[node]], found[node.operands[1]])
        else:
            found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    outputs = [found[output] for output in body.outputs[:carries]]
    types, places = [*parts_of(scan)[:carries]], [(place,) for place in range(carries)]
    for output, type in zip(body.outputs[carries:], parts_of(scan)[carries:], strict=True):
        pieces = [found[part] for part in _parts(output) or [output]]
        places.append(tuple(range(len(outputs), len(outputs) + len(pieces))))
        outputs += pieces
        types += [type.with_shape((*type.shape[:-1], piece.shape[-1])) if len(pieces) > 1 else type for piece in pieces]
    attrs = {**scan.attrs, "body": graph_of(body.inputs, outputs)}
    made = make_node("scan", scan.operands, attrs, tuple_of(types), scan.location)
    return (made, places) if halves_of(made, loops) is not None else None


def _parts_of_factor(dot: Node) -> list[Node]:
    (left, _), rank = dot.operands, dot.operands[0].type.rank
    return _parts(left) if dot.attrs["contract"][0] == (rank - 1,) and dot.attrs["batch"] == ((), ()) else []


def _parts(node: Node) -> list[Node]:
    """The few values of one shape that a value joins along its last axis; none if it is no such value."""
    if node.op == "concatenate" and node.attrs["axis"] == node.type.rank - 1:
        parts = list(node.operands)
    else:
        parts = _padded_parts(node)
    alike = len({part.shape for part in parts}) == 1 and 1 < len(parts) <= MOST_GATES
    return parts if alike else []


def _padded_parts(node: Node) -> list[Node]:
    """The parts of a sum of values that are padded with zeros to where they do not meet."""
    found: dict[int, Node] = {}
    ahead = [node]
    while ahead:
        each = ahead.pop()
        if each.op == "add" and len(found) + len(ahead) < MOST_GATES:
            ahead += each.operands
            continue
        if each.op != "pad" or each.attrs["value"] != 0 or any(each.attrs["interior"]) or min(each.attrs["low"]) < 0:
            return []
        *ahead_of, low = each.attrs["low"]
        *behind, _ = each.attrs["high"]
        if any(ahead_of) or any(behind) or low in found:
            return []
        found[low] = each.operands[0]
    parts = [found[low] for low in sorted(found)]
    starts = [sum(part.shape[-1] for part in parts[:number]) for number in range(len(parts))]
    whole = sum(part.shape[-1] for part in parts) == node.shape[-1]
    return parts if whole and starts == sorted(found) else []


def _in_parts(dot: Node, parts: Sequence[Node], right: Node) -> Node:
    """A product of joined values as a sum of products, in 32 bits at least."""
    (axis,), total, start = dot.attrs["contract"][1], None, 0
    attrs = dict(dot.attrs)
    wide = parts[0].dtype.bits < 32
    if wide:
        attrs["precision"] = parts[0].dtype.name
    for part in parts:
        end = start + part.shape[-1]
        factors = part, slice_along(right, axis, start, end)
        product = build("dot", *((cast(factor, float32) for factor in factors) if wide else factors), **attrs)
        total, start = product if total is None else add(total, product), end
    assert total is not None
    return cast(total, dot.dtype) if wide else total
