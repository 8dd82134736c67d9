"""Scans as loops of dispatches, several of whose turns are recorded one after the other.

Each recorded turn has buffers of its own, so a turn takes no dispatch but its kernels. What it carries alternates
between two buffers: it reads one and writes the other. A carry that is stacked as it was before the turn is in its row:
the turn writes the next row. Each turn has a counter of its own, and all counters are advanced together after the last
one; what the body only counts up is such a counter, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.control_flow import counted_step
from lavax.passes.kernels.commands import Command, Repeat, View, after_barrier, steps_of
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.schedule.embedding import (
    ControlFlow,
    LoweredControlFlow,
    Scheduler,
    embedded,
    result_of,
    with_distinct_outputs,
)
from lavax.passes.schedule.small_steps import COUNTER, copy_steps, filled, incremented, step_of
from lavax.passes.target.target import Loops


@dataclass(frozen=True)
class Recording:
    """The scans whose turns are recorded one after the other: those of short bodies, whose copies and counters count.

    Checked by `python -m benchmarks loops`.
    """

    nodes: int = 128  # of a body, at most
    kernels: int = 64  # of all turns that are recorded, unless two turns have more


RECORDING = Recording()


def suits_unrolling(node: Node, loops: Loops, schedule: Scheduler) -> bool:
    """Whether the node is a scan whose turns are recorded one after the other."""
    if not may_be_recorded(node, loops):
        return False
    whole = with_distinct_outputs(node.attrs["body"], {})
    return _computed_bytes(node) >= loops.carried_bytes or loops.has_large_kernel(whole, lambda: schedule(whole, {}))


def may_be_recorded(node: Node, loops: Loops) -> bool:
    """Whether the node is a scan of a short body, whose turns are recorded so if they are not too little work."""
    if node.op != "scan" or loops.turns < 2 or node.attrs["length"] == 0:
        return False
    body = node.attrs["body"]
    return len(body.nodes) <= RECORDING.nodes and not any(
        OPERATIONS[inner.op].family == "region" for inner in body.nodes
    )


def _computed_bytes(scan: Node) -> int:
    """The size of the largest carry that a turn computes."""
    body, carries = scan.attrs["body"], int(scan.attrs["carries"])
    given = set(body.inputs)
    return max((result.type.nbytes for result in body.outputs[:carries] if result not in given), default=0)


def unrolled(flow: ControlFlow, turns: int, schedule: Scheduler, lowered: LoweredControlFlow) -> RecordedLoop:
    """A scan in recorded turns."""
    body = _body_of(flow.node.attrs["body"], flow.node.attrs["carries"], schedule)
    scan = RecordedTurns(flow, body, turns, lowered)
    return RecordedLoop(tuple(scan.begin()), scan, tuple(scan.end()))


def turns_over_rows(
    flow: ControlFlow,
    turns: int,
    schedule: Scheduler,
    lowered: LoweredControlFlow,
    rows: int,
    following: frozenset[int],
    early: frozenset[int],
) -> RecordedTurns:
    """The turns of a scan over arrays of so many `rows`, which may be more than its turns.

    Sequences at the positions `following`, and results at the positions `early`, have the row of the next turn.
    """
    body = _body_of(flow.node.attrs["body"], flow.node.attrs["carries"], schedule, has_rows=False)
    return RecordedTurns(flow, body, turns, lowered, rows, following, early)


@dataclass(frozen=True)
class RecordedLoop:
    """A loop of recorded turns, if it has any: the commands before its turns, and those after them."""

    before: tuple[Command, ...]
    turns: RecordedTurns | None
    after: tuple[Command, ...]

    def commands(self) -> list[Command]:
        """All commands, one after the other."""
        return [*self.before, *(self.turns.commands() if self.turns else ()), *self.after]


@dataclass(frozen=True)
class _Body:
    """A scheduled body. Of its carries, by position: by how much a number is `counted` up, which the program does not
    do; the result of the body that stacks it as it was before the turn, in `rows`, which the program does not write.

    `stacked`: the further results of the body that the program writes.
    """

    graph: Graph
    program: KernelProgram
    counted: Mapping[int, int]
    rows: Mapping[int, int]
    stacked: tuple[int, ...]

    def reads(self, position: int) -> bool:
        """Whether a turn's kernels read an input of the body."""
        name = self.graph.inputs[position].name
        return any(name in part for step in steps_of(self.program.steps) for part in step.reads)

    def stays(self, position: int) -> bool:
        """Whether a carry has one buffer: it does not change, or the turn writes it in place."""
        name, given = self.program.results[position], self.graph.inputs[position].name
        return given in (name, self.program.donors.get(name))


def _body_of(body: Graph, carries: int, schedule: Scheduler, has_rows: bool = True) -> _Body:
    """A scan's body; without `has_rows`, the program writes all that is stacked."""
    counted = {position: step for position in range(carries) if (step := counted_step(body, position)) is not None}
    rows: dict[int, int] = {}
    for position in range(carries, len(body.outputs)) if has_rows else ():
        row = body.outputs[position]
        carry = body.inputs.index(row, 0, carries) if row in body.inputs[:carries] else None
        if carry is not None and row.type.size and carry not in {*counted, *rows} and body.outputs[carry] is not row:
            rows[carry] = position
    stacked = tuple(p for p in range(carries, len(body.outputs)) if p not in rows.values())
    carried = [body.inputs[p] if p in counted else body.outputs[p] for p in range(carries)]
    kept = {position: position for position in range(carries) if position not in rows}
    whole = graph_of(body.inputs, [*carried, *(body.outputs[position] for position in stacked)])
    graph = with_distinct_outputs(whole, {position: body.inputs[position] for position in kept})
    return _Body(graph, schedule(graph, kept), counted, rows, stacked)


class RecordedTurns:
    """The turns of a scan on their way to commands: `whole` blocks of so many `turns`, and a block of the `last`."""

    def __init__(
        self,
        flow: ControlFlow,
        body: _Body,
        turns: int,
        lowered: LoweredControlFlow,
        rows: int | None = None,
        following: frozenset[int] = frozenset(),
        early: frozenset[int] = frozenset(),
    ) -> None:
        self.flow, self.body, self.lowered, self.prefix = flow, body, lowered, flow.prefix
        attrs = flow.node.attrs
        self.carries, self.sequences = int(attrs["carries"]), int(attrs["sequences"])
        self.length = int(attrs["length"])
        self.following, self.early = following, early
        self.first, self.step = ((rows or self.length) - 1, -1) if attrs["reverse"] else (0, 1)
        fitting = max(2, RECORDING.kernels // max(len(body.program.steps), 1))
        self.turns = min(turns, fitting) // 2 * 2
        self.whole, last = divmod(self.length - 1, self.turns)
        self.last = last + 1
        self.recorded = self.turns if self.whole else self.last  # at most, one after the other

    # -- buffers -----------------------------------------------------------------------------------------------------

    @cached_property
    def counters(self) -> list[str]:
        """The counters of the recorded turns, and that of the turn behind if rows are written one turn ahead."""
        moves = self.slices or self.body.rows or self.body.stacked
        is_ahead = self.body.rows or self.following or self.early
        count = self.recorded + bool(is_ahead) if moves else 0
        return self._numbers([f"{self.prefix}counter{turn}" for turn in range(count)])

    @cached_property
    def slices(self) -> list[int]:
        """The positions of the sequences that turns read."""
        return [p for p in range(self.carries, self.carries + self.sequences) if self.body.reads(p)]

    @cached_property
    def counted(self) -> dict[int, list[str]]:
        """What is counted up and read, by position: the numbers that the recorded turns read, and the next one."""
        turns, read = range(self.recorded + 1), [p for p in self.body.counted if self.body.reads(p)]
        return {p: self._numbers([f"{self.prefix}counted{p}.{turn}" for turn in turns]) for p in read}

    @cached_property
    def own(self) -> dict[int, str]:
        """The buffers of carries in which the last turn leaves them."""
        positions = [p for p in range(self.carries) if p not in self.body.counted]
        return {position: result_of(self.flow, position, self.lowered) for position in positions}

    @cached_property
    def other(self) -> dict[int, str]:
        """The second buffers of carries that alternate."""
        body = self.body
        aside = [p for p in self.own if p not in body.rows and not body.stays(p)]
        names = {position: f"{self.prefix}body.aside{position}" for position in aside}
        self.lowered.sizes |= {name: self.flow.types[position].nbytes for position, name in names.items()}
        return names

    def _numbers(self, names: list[str]) -> list[str]:
        self.lowered.sizes |= dict.fromkeys(names, COUNTER.nbytes)
        return names

    def _carry(self, position: int, turn: int, left: int) -> str:
        """Where a carry is before a recorded turn, with so many turns left."""
        if position in self.body.counted:
            return self.counted[position][turn] if position in self.counted else self.flow.operands[position]
        if position in self.body.rows and left:
            return self._row(self.body.rows[position], turn)
        return self.other.get(position, self.own[position]) if left % 2 else self.own[position]

    def _row(self, position: int, turn: int) -> str:
        """The row that a recorded turn has of a stacked result."""
        return self._view(self.flow.results[position], f"row{position - self.carries}", turn, self._bytes_of(position))

    def _bytes_of(self, position: int) -> int:
        return self.flow.types[position].nbytes // self.length

    def _view(self, buffer: str, name: str, turn: int, nbytes: int) -> str:
        view = f"{self.prefix}{name}.{turn}"
        self.lowered.views[view] = View(buffer, self.counters[turn], nbytes)
        return view

    # -- commands ----------------------------------------------------------------------------------------------------

    def commands(self) -> list[Command]:
        """A repetition of blocks, and the last turns."""
        commands: list[Command] = []
        if self.whole:
            block = (*(command for turn in self.block("turn") for command in turn), *self.advance())
            commands += [Repeat(self.whole, block)] if block else []
        return [*commands, *(command for turn in self.last_block("last") for command in turn)]

    def block(self, name: str) -> list[tuple[Command, ...]]:
        """The turns of a block that is not the last one; `advance` has to follow. A turn's kernels have that name."""
        return [self._turn(turn, self.length - turn, name) for turn in range(self.turns)]

    def last_block(self, name: str) -> list[tuple[Command, ...]]:
        """The turns of the last block."""
        return [self._turn(turn, self.last - turn, name) for turn in range(self.last)]

    def begin(self) -> list[Command]:
        """What the first turn needs: counters, and the initial values where it finds them."""
        return [*self._start(), *self._initial()]

    def _start(self) -> list[KernelStep]:
        """The counters of the first recorded turns."""
        steps = []
        if self.counters:
            values = [self.first + self.step * turn for turn in range(len(self.counters))]
            steps.append(step_of(f"{self.prefix}start", filled(*values), (), self.counters))
        for position, names in self.counted.items():
            kernel = incremented(*(self.body.counted[position] * turn for turn in range(len(names))))
            steps.append(step_of(f"{self.prefix}start{position}", kernel, (self.flow.operands[position],), names))
        return steps

    def advance(self) -> list[KernelStep]:
        """All counters, moved on to the next recorded turns."""
        by_step: dict[int, list[str]] = {}
        for step, names in [(self.step, self.counters), *((self.body.counted[p], n) for p, n in self.counted.items())]:
            by_step.setdefault(step * self.turns, []).extend(names)
        steps = []
        for number, (step, names) in enumerate((step, names) for step, names in by_step.items() if names):
            kernel, each = incremented(step), tuple((name,) for name in names)
            name = f"{self.prefix}next{number}"
            steps.append(KernelStep(name, (kernel,) * len(names), each, each, barrier=number == 0))
        return steps

    def _initial(self) -> list[KernelStep]:
        """The initial values, copied to where the first turn finds them."""
        places = [self._carry(position, 0, self.length) for position in self.own]
        operands = [self.flow.operands[position] for position in self.own]
        return copy_steps(f"{self.prefix}begin", operands, places, [self.flow.types[p] for p in self.own])

    def end(self) -> list[KernelStep]:
        """What was counted up, if it is a result: the number that the next turn would read, or all steps together."""
        used = [position for position in self.counted if position in self.flow.results]
        sources = [self.counted[position][self.last] for position in used]
        results = [self.flow.results[position] for position in used]
        steps = copy_steps(f"{self.prefix}end", sources, results, [COUNTER] * len(used))
        for position, by in self.body.counted.items():
            if position in self.flow.results and position not in self.counted:
                given, result = self.flow.operands[position], self.flow.results[position]
                steps.append(step_of(f"{self.prefix}end{position}", incremented(by * self.length), [given], [result]))
        return steps

    def _turn(self, turn: int, left: int, name: str) -> tuple[Command, ...]:
        """A recorded turn of that name, with so many turns left, itself counted."""
        body, flow = self.body, self.flow
        inputs, given = body.graph.inputs, dict(enumerate(flow.operands))
        given |= {position: self._carry(position, turn, left) for position in range(self.carries)}
        for position in self.slices:
            slice, nbytes = f"slice{position - self.carries}", inputs[position].type.nbytes
            given[position] = self._view(flow.operands[position], slice, turn + (position in self.following), nbytes)
        bound = {inputs[position].name: buffer for position, buffer in given.items()}
        written = [self._written(position, turn, left) for position in range(self.carries)]
        written += [self._row(position, turn + (position in self.early)) for position in body.stacked]
        bound |= {n: at for n, at in zip(body.program.results, written, strict=True) if n not in bound}
        prefix = f"{self.prefix}body."
        return after_barrier(embedded(body.program, bound, prefix, None, self.lowered, f"{name}{turn}."))

    def _written(self, position: int, turn: int, left: int) -> str:
        """Where a recorded turn leaves a carry."""
        if position in self.body.counted:
            return self._carry(position, turn, left)
        if position in self.body.rows:
            return self._row(self.body.rows[position], turn + 1) if left > 1 else self.own[position]
        return self._carry(position, turn, left - 1)


