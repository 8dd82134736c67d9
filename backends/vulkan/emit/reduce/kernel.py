"""Row kernels: reductions, and elementwise results computed from them over the same rows.

Reductions that depend on each other take place in phases, each one walk over the row; results with a value per element
are written in a last walk. If a walk is written out without a loop, registers keep its loads and intermediate results
for the next walk. choose.py picks the schedule; each form of row group has a file with its schedule and its emitter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from lavax.backends.vulkan.emit.reduce.accumulators import Accumulators
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.choose_cpu import choose_in_loop
from lavax.backends.vulkan.emit.reduce.common_vectors import CommonVectorGroup, CommonVectorRows, CommonVectors
from lavax.backends.vulkan.emit.reduce.early_reads import (
    early_functions,
    early_reads,
    reads_of_elements,
    waits_for_none,
)
from lavax.backends.vulkan.emit.reduce.interleaved import InterleavedGroup, InterleavedRows
from lavax.backends.vulkan.emit.reduce.invocation import InvocationGroup, InvocationRows
from lavax.backends.vulkan.emit.reduce.neighbours import NeighbourGroup, NeighbourRows
from lavax.backends.vulkan.emit.reduce.online_sum import OnlineRegisters, OnlineSum, online_sum_of, phases_of
from lavax.backends.vulkan.emit.reduce.own_rows import own_rows_of
from lavax.backends.vulkan.emit.reduce.ragged import RaggedGroup, RaggedRows
from lavax.backends.vulkan.emit.reduce.row_group import RowGroup
from lavax.backends.vulkan.emit.reduce.row_reads import common_reads, is_only_read
from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.emit.reduce.shared_results import shared_results
from lavax.backends.vulkan.emit.reduce.tiles import TiledRows, TileGroup
from lavax.backends.vulkan.emit.reduce.walk import STEP, RowWalk
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch, at_row, grid, open_body
from lavax.backends.vulkan.glsl.reductions import POSITIONS
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import operand_coordinates
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# The emitter of each form of row group; choose_gpu.FORMS says when each form is taken.
ROW_GROUPS: dict[type[RowSchedule], type[RowGroup[Any]]] = {
    InvocationRows: InvocationGroup,
    NeighbourRows: NeighbourGroup,
    CommonVectorRows: CommonVectorGroup,
    RaggedRows: RaggedGroup,
    InterleavedRows: InterleavedGroup,
    TiledRows: TileGroup,
}


def emit_row(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: RowSchedule | None = None) -> Launch:
    """The shader of a row kernel, by the schedule given or the one chosen from its sizes."""
    return RowEmitter(kernel, schedule or choose_schedule(kernel, profile, lifted), lifted).emit()


def emit_row_in_loop(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The same as part of a workgroup's loop on a CPU driver."""
    return RowEmitter(kernel, choose_in_loop(kernel, profile), lifted).emit()


class RowEmitter:
    """The state of writing one row kernel."""

    def __init__(self, kernel: Kernel, schedule: RowSchedule, lifted: bool) -> None:
        self.kernel, self.schedule = kernel, schedule
        self.body, self.outputs = open_body(kernel, lifted)
        self.body.loads_runs = schedule.run > 1
        shared = shared_results(kernel) if schedule.row_width > 1 else frozenset[Node]()
        self.group: RowGroup[Any] = ROW_GROUPS[type(schedule)](self.body, schedule, shared)
        self.accumulators = Accumulators(self.body, schedule, kernel.domain.length, shared)
        self.phases = phases_of(kernel)
        together = schedule.together if isinstance(schedule, (NeighbourRows, InvocationRows)) else 1
        self.common = shared_results(kernel, together) if together > 1 else frozenset[Node]()
        self.own = own_rows_of(kernel, self.group, max(self.phases.values(), default=0))
        self.vectors: CommonVectors | None = None
        if isinstance(self.group, CommonVectorGroup):
            self.vectors = CommonVectors(self.body, kernel, self.group)

    def emit(self) -> Launch:
        rows = self.kernel.domain.rows // self.schedule.row_width
        with self.group.opened(rows) as names:
            places = self.group.places(self.kernel.domain.rows, names)
            rows_of = {number: at_row(row, self.kernel) for number, row in enumerate(places)}
            self.walk = RowWalk(self.body, self.kernel, self.schedule)
            if isinstance(self.schedule, RaggedRows) and not self.schedule.in_turn:
                self.body.aligned_reads = self._vectors_in_common(self.schedule)
            for at_once in [{number: row} for number, row in rows_of.items()] if self.schedule.in_turn else [rows_of]:
                self.rows = self.walk.rows = at_once
                self._reduce_in_phases()
                self._write_rows()
                self._write_row_values()
        return self._launch(rows)

    def _launch(self, rows: int) -> Launch:
        lines, subgroup, body = self.body.scopes[0].lines, self.group.subgroup, self.body
        local, shuffles = (self.schedule.local, 1), subgroup is not None
        text = ShaderText(body.uses, lines, local, self.group.declarations, subgroup, shuffles=shuffles)
        groups, words = grid(self.group.workgroups(rows)), tuple(body.parameters.words)
        shader = assemble(text)
        functions = shader.source.partition("void main")[0]
        iterations = 0 if _has_loops(functions) else self.group.turns * (1 + self.walk.iterations)
        return Launch(shader, words, groups, text=text, iterations=iterations)

    def _if(self, condition: str) -> AbstractContextManager[None]:
        return self.body.block(f"if ({condition})") if condition else nullcontext()

    # -- reductions ---------------------------------------------------------------------------------------------------

    def _reduce_in_phases(self) -> None:
        early = early_reads(self.kernel) if self.group.reads_early else []
        self._read([read for read in early if waits_for_none(read)])
        if self.vectors is not None:
            self._reduce_with_vectors(self.vectors, early)
            return
        online = online_sum_of(self.kernel) if self.schedule.online else None
        if online is not None:
            self._reduce_online(online)
            self._read(early)
        is_ahead = self.group.has_barriers and not self.schedule.loop
        ahead = reads_of_elements(self.kernel, common=is_only_read(self.kernel)) if is_ahead else []
        functions = early_functions(self.kernel) if self.group.reads_early else []
        for phase in range(2 if online is not None else 0, max(self.phases.values(), default=0)):
            reductions = [node for node, of in self.phases.items() if of == phase + 1]
            self._reduce(reductions, *(([], []) if phase else (ahead, functions)))
            self._read(early)

    def _reduce_with_vectors(self, vectors: CommonVectors, early: list[tuple[Node, Coordinates]]) -> None:
        """What all rows have in common first, while their own elements are on their way."""
        (row,) = self.rows.values()
        vectors.walk.rows = self.rows
        vectors.read()
        if not self.schedule.loop:
            own = reads_of_elements(self.kernel)
            self.walk.write(lambda _, condition: self._evaluate(own))
        self._read(early)
        functions = early_functions(self.kernel)
        vectors.write(row, lambda: self._read(functions))
        for phase in range(1, max(self.phases.values()) + 1):
            reductions = [node for node, of in self.phases.items() if of == phase and node not in vectors.reductions]
            if reductions:
                self._reduce(reductions, [], [])

    def _evaluate(self, instances: list[tuple[Node, Coordinates]]) -> None:
        for node, at in instances:
            self.body.value(node, at)

    def _read(self, instances: list[tuple[Node, Coordinates]]) -> None:
        for row in self.rows.values():
            with self.body.at(row):
                self._evaluate(instances)

    def _reduce(
        self, reductions: list[Node], ahead: list[tuple[Node, Coordinates]], functions: list[tuple[Node, Coordinates]]
    ) -> None:
        """One phase: a walk over each strip's row that accumulates these reductions, and the joining of members.

        The walk also reads `ahead`, for later ones, and `functions` are computed before members wait for each other.
        """
        accumulators, common = self.accumulators, self.common
        apart = [node for node in reductions if node not in common]
        once = {node: accumulators.open(node) for node in reductions if node in common}
        names = {number: {node: accumulators.open(node) for node in apart} for number in self.rows}
        chunked = [node for node in reductions if accumulators.is_chunked(node)]

        def take(strip: int, condition: str) -> None:
            if self.vectors is not None:
                self.vectors.provide(self.walk)
            for node, name in (*names[strip].items(), *(() if strip else once.items())):
                self._take(node, name, condition)
            self._evaluate(ahead)

        @contextmanager
        def chunk() -> Iterator[None]:
            kinds = {node: type_name(node.dtype, accumulators.width_of(node)) for node in chunked}
            opened = [pair for of in (once, *names.values()) for pair in of.items()]
            sums = [(name, kinds[node]) for node, name in opened if node in kinds]
            for name, kind in sums:
                self.body.line(f"{kind} {name}_chunk = {kind}(0);")
            yield
            for name, kind in sums:
                accumulators.add_exactly(name, f"{name}_chunk", kind)

        def take_ends(strip: int, condition: str) -> None:
            for node, name in (*names[strip].items(), *(() if strip else once.items())):
                value = self._operand(node)
                with self._if(condition):
                    accumulators.take_end(node, name, value)

        self.walk.write(take, chunk if chunked else None, ends=take_ends)
        self._read(functions)
        of_all, *of_rows = (
            [(node, accumulators.close(node, name)) for node, name in of.items()] for of in (once, *names.values())
        )
        self.group.join([*of_all, *(pair for of_row in of_rows for pair in of_row)])
        if self.own is not None:
            self.rows, of_rows = {0: self.own.opened()}, [self.own.results(of_rows)]
        for row, of_row in zip(self.rows.values(), of_rows, strict=True):
            with self.body.at(row):
                for node, name in (*of_all, *of_row):
                    self.body.define(node, self.kernel.coordinates[node], GlslValue(name, self.group.width_of(node)))

    def _take(self, node: Node, name: str, condition: str) -> None:
        """Accumulates the element, or the vector of elements, that a walk visits."""
        value = self._operand(node)
        if node.op in POSITIONS:
            at = operand_coordinates(node, self.kernel.coordinates[node], self.kernel)
            position = self.body.index_value(self.body.real(at[node.attrs["axis"]]))
            with self._if(condition):
                self.accumulators.take_position(node, name, value, position)
            return
        with self._if(condition):
            self.accumulators.take(node, name, value)

    def _operand(self, node: Node) -> GlslValue:
        """What a reduction takes of the element, or the vector of elements, that a walk visits."""
        return self.body.value(node.operands[0], operand_coordinates(node, self.kernel.coordinates[node], self.kernel))

    def _reduce_online(self, found: OnlineSum) -> None:
        """The first two phases in one walk."""
        body, width, compensated = self.body, self.schedule.element_width, self.accumulators.is_compensated(found.total)
        kind = type_name(found.total.dtype, width)
        total = self.accumulators.open(found.total)
        registers = OnlineRegisters(body.name(), body.name(), total, body.uses)
        body.lines(registers.opened())
        values: list[str] = []

        def take(_: int, condition: str) -> None:
            at = operand_coordinates(found.greatest, self.kernel.coordinates[found.greatest], self.kernel)
            value = widened(body.value(found.x, at), width, found.total.dtype)
            values.append(body.name() if condition else value)
            if condition:
                body.lines(registers.masked(values[-1], value, condition, kind))

        def add_up() -> None:
            top, part = body.name(), body.name()
            body.lines(registers.shifted(values, width, top, compensated))
            body.line(f"{kind} {part} = {registers.part(values)};")
            if compensated:
                self.accumulators.add_exactly(total, part, kind)
            else:
                body.line(f"{total} += {part};")
            body.lines(registers.peaked(values, width, top, part))

        self.walk.write(take, after=add_up)
        self._join_online(found, registers, self.accumulators.close(found.total, total))

    def _join_online(self, found: OnlineSum, registers: OnlineRegisters, total: str) -> None:
        """Joins the maximum first, from which the subtrahend is computed, then the sums relative to the subtrahend."""
        body, at = self.body, self.kernel.coordinates
        (row,) = self.rows.values()
        with body.at(row):
            self.group.join([(found.greatest, registers.peak)])
            body.define(found.greatest, at[found.greatest], GlslValue(registers.peak, 1))
            subtrahend = body.value(*found.subtrahend).text
            body.line(registers.closed(subtrahend, total))
            self.group.join([(found.total, total)])
            body.lines(registers.ended(subtrahend, total))
            body.define(found.total, at[found.total], GlslValue(total, 1))

    # -- results ------------------------------------------------------------------------------------------------------

    def _write_rows(self) -> None:
        whole = [output for output in self.kernel.graph.outputs if not self.kernel.is_row_level(output)]
        if whole:
            self.walk.write(lambda row, condition: self._write(whole, _all_of(self._exists(row), condition)))

    def _write_row_values(self) -> None:
        single = [output for output in self.kernel.graph.outputs if self.kernel.is_row_level(output)]
        first = "lane_of_row == 0" if self.schedule.is_shared else ""
        for number, row in self.rows.items() if single else ():
            with self.body.at(row):
                self._write(single, self.own.exists if self.own else _all_of(self._exists(number), first))

    def _vectors_in_common(self, schedule: RaggedRows) -> dict[tuple[Node, str], Index]:
        """What rows that begin between vectors put together theirs of, in arrays that they share."""
        element = schedule.element_index(variable(STEP, schedule.vectors))
        found = common_reads(self.kernel, element)
        return {key: at for key, at in found.items() if self.body.is_aligned(key[0], at)}

    def _exists(self, number: int) -> str:
        return self.group.exists_of(number, self.kernel.domain.rows)

    def _write(self, outputs: list[Node], condition: str) -> None:
        coordinates = self.kernel.coordinates
        results = {output: self.body.value(output, coordinates[output]) for output in outputs}
        with self._if(condition):
            for output, result in results.items():
                self.body.store(output, coordinates[output], result, self.outputs[output])


def _has_loops(functions: str) -> bool:
    return "for (" in functions or "while (" in functions


def _all_of(*conditions: str) -> str:
    """The conjunction of conditions, of which empty ones hold always."""
    return " && ".join(filter(None, conditions))
