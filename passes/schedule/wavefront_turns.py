"""The commands of loops that take their turns together (wavefront.py), block by block.

    loop 0:  block 0   block 1   ...   last block
    loop 1:            block 0   ...   last but one   last block

Kernels of the same turn of their blocks have no barrier between them. A dispatch before each block moves the counters
of all turns on, and beside it what lies between two loops is computed for the next block. Loops that are recorded from
product to product (rotated_scan.py) have their first row before the first block, so their blocks have the rows behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node, topological
from lavax.passes.kernels.commands import Command, Repeat, View, after_barrier
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.schedule.embedding import (
    ControlFlow,
    LoweredControlFlow,
    Scheduler,
    embedded,
    with_distinct_outputs,
)
from lavax.passes.schedule.rotated_scan import rotated
from lavax.passes.schedule.rotated_turns import halves_of
from lavax.passes.schedule.row_blocks import rows_of_block
from lavax.passes.schedule.small_steps import COUNTER, filled, incremented, step_of
from lavax.passes.schedule.unrolled_scan import RecordedLoop, RecordedTurns, unrolled
from lavax.passes.schedule.wavefront import turns_of_block
from lavax.passes.target.target import Loops


def lower_wavefront(flow: ControlFlow, loops: Loops, schedule: Scheduler, lowered: LoweredControlFlow) -> None:
    """The commands of loops that take their turns together."""
    (first, *_) = (node for node in flow.node.attrs["body"].nodes if node.op == "scan")
    turns = turns_of_block(first.attrs["length"], loops)
    while True:
        found = LoweredControlFlow()
        commands = _Wavefront(flow, turns, loops, schedule, found)
        fewest = min(stage.turns.turns for stage in commands.stages)
        if fewest == turns:
            break
        turns = fewest
    lowered.commands += commands.commands()
    lowered.sizes |= found.sizes
    lowered.placed |= found.placed
    lowered.placed_sizes |= found.placed_sizes
    lowered.views |= found.views


@dataclass(frozen=True)
class _Between:
    """What lies before a loop, computed for the rows of a block: its program, the buffers that it reads whole, and
    those of which it reads and writes rows, with the bytes of a row each."""

    program: KernelProgram
    whole: Sequence[str]
    read: Sequence[tuple[str, int]]
    written: Sequence[tuple[str, int]]
    counter: str  # of the first row of the next block


@dataclass(frozen=True)
class _Stage:
    loop: RecordedLoop
    turns: RecordedTurns
    between: _Between | None


class _Wavefront:
    def __init__(
        self, flow: ControlFlow, turns: int, loops: Loops, schedule: Scheduler, lowered: LoweredControlFlow
    ) -> None:
        self.flow, self.block, self.loops, self.schedule, self.lowered = flow, turns, loops, schedule, lowered
        self.body = flow.node.attrs["body"]
        self.scans = [node for node in self.body.nodes if node.op == "scan"]
        attrs = self.scans[0].attrs
        self.length, self.reverse = int(attrs["length"]), bool(attrs["reverse"])
        self.is_rotated = halves_of(self.scans[0], loops) is not None
        self.buffers: dict[Node, str] = dict(zip(self.body.inputs, flow.operands, strict=True))
        for number, output in enumerate(self.body.outputs):
            if number in flow.results:
                self.buffers.setdefault(output, flow.results[number])
        self.ends = [f"{flow.prefix}{name}" for name in ("first", "last")]
        self.made, self.written = self._made_from_loops(), set[Node]()
        self.of_turns: dict[Kernel, Kernel] = {}  # kernels of turns, each with how many there are side by side
        self.stages = [self._stage(number, scan) for number, scan in enumerate(self.scans)]
        self.whole = self.stages[0].turns.whole

    # -- loops and what lies between them ------------------------------------------------------------------------------

    def _stage(self, number: int, scan: Node) -> _Stage:
        between = self._between(number, scan) if number else None
        items = [node for node in self.body.nodes if node.op == "item" and node.operands[0] is scan]
        results = {node.attrs["index"]: self._buffer(node) for node in items}
        operands = tuple(self._buffer(operand) for operand in scan.operands)
        flow = ControlFlow(scan, f"{self.flow.prefix}{number}.", operands, results)
        halves = halves_of(scan, self.loops)
        if halves is None:
            loop = unrolled(flow, self.block, self.schedule, self.lowered)
        else:
            loop = rotated(flow, halves, self.block, self.schedule, self.lowered)
        assert loop.turns is not None
        return _Stage(loop, loop.turns, between)

    def _buffer(self, node: Node) -> str:
        """The buffer of a value, which is one of the program around it or of the wavefront's own."""
        if node not in self.buffers:
            name = f"{self.flow.prefix}value{len(self.buffers)}"
            self.lowered.sizes[name] = node.type.nbytes
            self.buffers[node] = name
        return self.buffers[node]

    def _made_from_loops(self) -> set[Node]:
        found = set(self.scans)
        for node in self.body.nodes:
            if not found.isdisjoint(node.operands):
                found.add(node)
        return found

    def _between(self, number: int, scan: Node) -> _Between | None:
        """What a loop goes through that is computed from loops before it, and was not for one of these."""
        before = set(topological([scan]))
        made = [node for node in self.body.nodes if node in before and node.op not in ("scan", "item")]
        made = [node for node in made if node in self.made]
        carries = scan.attrs["carries"]
        wanted = {node: None for node in made if node in scan.operands[carries:] or node in self.body.outputs}
        wanted = {node: None for node in wanted if node not in self.written}
        if not wanted:
            return None
        rows = rows_of_block(list(wanted), made, self.length, self.block)
        assert rows is not None, "a loop is joined only if it goes through rows"
        self.written |= wanted.keys()
        graph = with_distinct_outputs(rows.graph, {})
        counter = f"{self.flow.prefix}row{number}"
        self.lowered.sizes[counter] = COUNTER.nbytes
        return _Between(
            self.schedule(graph, {}),
            [self._buffer(node) for node in rows.whole],
            [(self._buffer(node), node.type.nbytes // self.length) for node in rows.given],
            [(self._buffer(node), node.type.nbytes // self.length) for node in wanted],
            counter,
        )

    # -- commands ------------------------------------------------------------------------------------------------------

    def commands(self) -> list[Command]:
        """The commands: blocks in which not all loops take part are recorded one by one, the others are repeated."""
        count = len(self.stages)
        repeated = max(self.whole - count + 1, 0)  # blocks of which all loops have one that is not the last
        found: list[Command] = list(self._start())
        number = 0
        while number < self.whole + count:
            if number < count:
                found += after_barrier(self.stages[number].loop.before)
            if number == count - 1 and repeated:
                found.append(Repeat(repeated, (*self._turns(number, "turn"), *self._end_of(number, "next"))))
                number += repeated
                continue
            found += [*self._turns(number, f"block{number}.turn"), *self._end_of(number, f"block{number}.next")]
            number += 1
        return [*found, *(command for stage in self.stages for command in after_barrier(stage.loop.after))]

    def _start(self) -> list[KernelStep]:
        """The numbers of rows at which blocks begin: the next one for each loop, the first and the last one."""
        counters = [stage.between.counter for stage in self.stages if stage.between]
        if not counters:
            return []
        self.lowered.sizes |= dict.fromkeys(self.ends, COUNTER.nbytes)
        last = self.length - self.block
        values = [*(int(self.is_rotated) for _ in counters), 0, last]
        rows = [last - value if self.reverse else value for value in values]
        return [step_of(f"{self.flow.prefix}start", filled(*rows), (), [*counters, *self.ends])]

    def _active(self, number: int) -> Iterator[tuple[int, _Stage, int]]:
        """The loops that take turns, and which of their blocks they take."""
        for place, stage in enumerate(self.stages):
            if 0 <= number - place <= self.whole:
                yield place, stage, number - place

    def _turns(self, number: int, name: str) -> list[KernelStep]:
        """The turns of all loops, side by side; the rows of the next blocks are counted beside the first ones."""
        courses, counters = list[list[list[KernelStep]]](), list[str]()
        for _, stage, block in self._active(number):
            is_last = block == self.whole
            turns = stage.turns.last_block(name) if is_last else stage.turns.block(name)
            steps = _between_barriers(command for turn in turns for command in turn)
            courses.append([[self._beside_others(step) for step in part] for part in steps])
            if stage.between and not is_last:
                counters.append(stage.between.counter)
        found = [_together(parts) for parts in zip_longest(*courses, fillvalue=())]
        if counters and found:
            kernel, each = incremented(-self.block if self.reverse else self.block), tuple((one,) for one in counters)
            step = KernelStep(f"{self.flow.prefix}{name}.rows", (kernel,) * len(counters), each, each, barrier=False)
            found[0].append(step)
        return [step for steps in found for step in steps]

    def _beside_others(self, step: KernelStep) -> KernelStep:
        """A turn's step, whose kernels share the device with those of other loops."""
        for kernel in step.kernels:
            if kernel not in self.of_turns:
                self.of_turns[kernel] = replace(kernel, beside=len(self.stages))
        return replace(step, kernels=tuple(self.of_turns[kernel] for kernel in step.kernels))

    def _end_of(self, number: int, name: str) -> list[Command]:
        """What the next blocks of turns wait for: counters, and what loops go through."""
        courses = [[replace(step, name=f"{step.name}.{name}") for step in stage.turns.advance()]
                   for _, stage, block in self._active(number) if block < self.whole]  # fmt: skip
        found: list[Command] = []
        parts = [_between_barriers(course) for course in courses]
        for place, stage, block in self._active(number + 1):
            if stage.between is None:
                continue
            if self.is_rotated and block == 0:
                found += self._rows(place, stage.between, self.ends[0], f"{name}.first")
            counter = self.ends[1] if block == self.whole else stage.between.counter
            parts.append(_between_barriers(self._rows(place, stage.between, counter, name)))
        together = [_together(steps) for steps in zip_longest(*parts, fillvalue=())]
        return [*found, *(step for steps in together for step in steps)]

    def _rows(self, place: int, between: _Between, counter: str, name: str) -> tuple[Command, ...]:
        """Computes what lies before a loop, for the rows of a block."""
        prefix = f"{self.flow.prefix}{place}.between."
        bound = list[str]()
        for kind, buffers in (("read", between.read), ("written", between.written)):
            for number, (buffer, nbytes) in enumerate(buffers):
                view = f"{prefix}{kind}{number}.{counter}"
                self.lowered.views[view] = View(buffer, counter, nbytes)
                bound.append(view)
        program, count = between.program, len(between.read)
        names = dict(zip(program.results, bound[count:], strict=True))
        given = (*bound[:count], *between.whole)
        names |= dict(zip((node.name for node in program.graph.inputs), given, strict=True))
        return after_barrier(embedded(program, names, prefix, None, self.lowered, f"{name}."))


def _between_barriers(commands: Iterable[Command]) -> list[list[KernelStep]]:
    """The steps, cut where one waits."""
    found: list[list[KernelStep]] = []
    for command in commands:
        assert isinstance(command, KernelStep), "a turn has no loops"
        if command.barrier or not found:
            found.append([])
        found[-1].append(command)
    return found


def _together(parts: Iterable[Sequence[KernelStep]]) -> list[KernelStep]:
    """Steps of several loops, of which the first waits for what was before."""
    steps = [step for part in parts for step in part]
    return [replace(step, barrier=number == 0) for number, step in enumerate(steps)]
