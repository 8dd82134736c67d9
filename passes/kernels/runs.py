"""Concatenations of runs of one array: mirrored, repeated and rotated axes, which are one read at a computed place.

The place of a run moves by a step for each of its elements, and jumps to the first place of the next run. So it is a
sum of clamped counters, one for each run and jump.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.kernels.index import ZERO, Index, add, clamp, linear, substitute, variable
from lavax.passes.kernels.reads import MOVES, READS, Coordinates, Read

_ALONG = "along the run"


@dataclass(frozen=True)
class Run:
    """Elements of an axis at `first`, `first + step`, …"""

    first: int
    step: int
    count: int

    @property
    def last(self) -> int:
        return self.first + self.step * (self.count - 1)


def reads_in_one(node: Node, at: Coordinates) -> tuple[Read, ...]:
    """What an element is computed from, with runs of one array as one read of it."""
    read = one_read(node, at)
    return READS[node.op](node, at) if read is None else (read,)


def one_read(node: Node, at: Coordinates) -> Read | None:
    """The only read of a concatenate whose operands are all runs of one array along one of its axes; else None."""
    if node.op != "concatenate" or len({_moved(operand) for operand in node.operands}) > 1:
        return None
    axis = node.attrs["axis"]
    found = [_read_along(operand, at, axis) for operand in node.operands]
    source = found[0][0]
    places = [where for _, where in found]
    varying = [d for d in range(source.type.rank) if _varies([where[d] for where in places])]
    if len(varying) != 1:
        return None
    (moving,) = varying
    runs = [_run(where[moving], operand.shape[axis]) for where, operand in zip(places, node.operands, strict=True)]
    known = [run for run in runs if run is not None]
    if len(known) < len(runs):
        return None
    place = place_in(known, at[axis], source.shape[moving])
    return source, (*places[0][:moving], place, *places[0][moving + 1 :])


def _varies(places: Sequence[Index]) -> bool:
    """Whether places along one axis of the array differ between runs or within one."""
    return any(place != places[0] or _ALONG in place.variables for place in places)


def _moved(node: Node) -> Node:
    """The node whose elements a chain of movements reads."""
    while node.op in MOVES:
        (node,) = node.operands
    return node


def _read_along(operand: Node, at: Coordinates, axis: int) -> Read:
    """Where the source of an operand is read, by the number of the element in the run."""
    along = variable(_ALONG, operand.shape[axis])
    read: Read = (operand, (*at[:axis], along, *at[axis + 1 :]))
    while read[0].op in MOVES:
        (read,) = READS[read[0].op](*read)
    return read


def _run(place: Index, count: int) -> Run | None:
    """The run, if its places move by equal steps and depend on nothing else."""
    first = substitute(place, {_ALONG: ZERO})
    if not first.is_constant:
        return None
    if count == 1 or place.is_constant:
        return Run(first.constant, 0, count)
    ((atom, step), *others) = place.terms
    return None if others or atom.key != _ALONG else Run(first.constant, step, count)


def place_in(runs: Sequence[Run], along: Index, extent: int) -> Index:
    """The place of an element of the runs, one after the other, in an axis of that extent."""
    start, ends = 0, list[tuple[Index, int]]()
    for number, run in enumerate(runs):
        jump = run.first - runs[number - 1].last if number else 0
        joins = number > 0 and jump == run.step  # the jump is one step more
        if jump and not joins:
            ends.append((clamp(add(along, 1 - start), 0, 1), jump))
        if run.step:
            ends.append((clamp(add(along, joins - start), 0, run.count - 1 + joins), run.step))
        start += run.count
    return clamp(linear(ends, runs[0].first), 0, extent - 1)
