"""Scans as loops of dispatches from product to product (rotated_turns.py), several turns recorded at once."""

from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Graph, input_node, make_node
from lavax.ir.types import tuple_of
from lavax.passes.kernels.commands import Command, View, after_barrier
from lavax.passes.schedule.embedding import (
    ControlFlow,
    LoweredControlFlow,
    Scheduler,
    embedded,
    result_of,
    with_distinct_outputs,
)
from lavax.passes.schedule.rotated_turns import Halves
from lavax.passes.schedule.small_steps import COUNTER, filled, step_of
from lavax.passes.schedule.unrolled_scan import RecordedLoop, RecordedTurns, turns_over_rows


def rotated(
    flow: ControlFlow, halves: Halves, turns: int, schedule: Scheduler, lowered: LoweredControlFlow
) -> RecordedLoop:
    """A scan as the first half of its first turn, turns from half to half, and the last one's second half."""
    return _Rotated(flow, halves, turns, schedule, lowered).loop()


class _Rotated:
    def __init__(
        self, flow: ControlFlow, halves: Halves, turns: int, schedule: Scheduler, lowered: LoweredControlFlow
    ) -> None:
        self.flow, self.halves, self.turns, self.schedule, self.lowered = flow, halves, turns, schedule, lowered
        self.length = int(flow.node.attrs["length"])
        self.ends = [f"{flow.prefix}{name}" for name in ("first", "last")]
        self.unchanging = flow.operands[halves.carries + halves.sequences :]

    def loop(self) -> RecordedLoop:
        flow, halves, lowered = self.flow, self.halves, self.lowered
        places = (0, self.length - 1)
        lowered.sizes |= dict.fromkeys(self.ends, COUNTER.nbytes)
        numbers = filled(*(places[::-1] if flow.node.attrs["reverse"] else places))
        before: list[Command] = [step_of(f"{flow.prefix}ends", numbers, (), self.ends)]
        held = [f"{flow.prefix}held{number}" for number in range(len(halves.handed))]
        lowered.sizes |= {name: node.type.nbytes for name, node in zip(held, halves.handed, strict=True)}
        given = [*flow.operands[: halves.carries], *self._rows("first", 0), *self.unchanging]
        before += self._half("head", halves.first, given, [*held, *self._written(halves.early, "first", 0)])
        turns = self._turns(held) if self.length > 1 else None
        if turns is not None:
            before += after_barrier(turns.begin())
            held = [turns.own[position] for position in range(turns.carries)]
        given = [*held, *self._rows("last", 1), *self.unchanging]
        carried = [result_of(flow, position, lowered) for position in range(halves.carries)]
        after = self._half("tail", halves.second(), given, [*carried, *self._written(halves.late, "last", 1)])
        return RecordedLoop(tuple(before), turns, after)

    def _half(self, name: str, graph: Graph, given: Sequence[str], results: Sequence[str]) -> tuple[Command, ...]:
        """Half a turn, over these buffers."""
        graph = with_distinct_outputs(graph, {})
        program = self.schedule(graph, {})
        bound = dict(zip((node.name for node in program.graph.inputs), given, strict=True))
        bound |= dict(zip(program.results, results, strict=True))
        return after_barrier(embedded(program, bound, f"{self.flow.prefix}{name}.", None, self.lowered))

    def _rows(self, name: str, end: int) -> list[str]:
        """The rows of the sequences at an end."""
        first = self.halves.carries
        positions = range(first, first + self.halves.sequences)
        nbytes = [self.halves.body.inputs[position].type.nbytes for position in positions]
        names = [f"{self.flow.prefix}{name}.slice{position - first}" for position in positions]
        for view, position, size in zip(names, positions, nbytes, strict=True):
            self.lowered.views[view] = View(self.flow.operands[position], self.ends[end], size)
        return names

    def _written(self, positions: Sequence[int], name: str, end: int) -> list[str]:
        """The rows of stacked results at an end."""
        names = [f"{self.flow.prefix}{name}.row{position - self.halves.carries}" for position in positions]
        for view, position in zip(names, positions, strict=True):
            nbytes = self.halves.body.outputs[position].type.nbytes
            self.lowered.views[view] = View(self.flow.results[position], self.ends[end], nbytes)
        return names

    def _turns(self, held: Sequence[str]) -> RecordedTurns:
        """The turns between."""
        flow, halves, count = self.flow, self.halves, len(held)
        sequences = flow.operands[halves.carries : halves.carries + halves.sequences]
        stacked = (*halves.early, *halves.late)
        body, turns = halves.between(), self.length - 1
        ends = range(count, count + 2 * len(sequences))
        operands = [
            input_node(node.name, node.type.with_shape((turns, *node.shape)) if position in ends else node.type)
            for position, node in enumerate(body.inputs)
        ]
        types = [output.type if number < count else output.type.with_shape((turns, *output.shape))
                 for number, output in enumerate(body.outputs)]  # fmt: skip
        own = {"carries": count, "sequences": 2 * len(sequences), "length": turns, "body": body}
        node = make_node("scan", operands, {**flow.node.attrs, **own}, tuple_of(types), flow.node.location)
        results = {count + number: flow.results[position] for number, position in enumerate(stacked)}
        buffers = (*held, *sequences, *sequences, *self.unchanging)
        within = ControlFlow(node, f"{flow.prefix}turns.", buffers, results)
        following = range(count + len(sequences), count + 2 * len(sequences))
        early = range(count, count + len(halves.early))
        return turns_over_rows(
            within, self.turns, self.schedule, self.lowered, self.length, frozenset(following), frozenset(early)
        )
