"""Row kernels: reductions, and what is computed from them over the same rows.

Reductions that depend on each other are done in phases, each one walk over the row; whole rows are written in a
last walk. Where a walk is written out, without a loop, what it loaded and computed stands in registers for the next.
How rows are shared out is the schedule's choice (choose.py), how a team makes one result of its members' is in
row_group.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from lavax.backends.vulkan.emit.reduce.choose import Schedule, choose_schedule, element_index, row_index
from lavax.backends.vulkan.emit.reduce.early_reads import early_reads, waits_for_none
from lavax.backends.vulkan.emit.reduce.online_sum import OnlineRegisters, OnlineSum, online_sum_of, phases_of
from lavax.backends.vulkan.emit.reduce.row_group import Team
from lavax.backends.vulkan.glsl.body import Value, widened
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, INFINITY, VECTOR, literal, type_name
from lavax.backends.vulkan.glsl.launch import (
    WORKGROUP,
    Launch,
    at_element,
    at_row,
    grid,
    open_body,
    open_invocations,
    open_strips,
)
from lavax.backends.vulkan.glsl.reductions import POSITIONS, REDUCTIONS, beats
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.accesses import operand_coordinates
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

# From this many additions one after the other on, what rounding loses is kept and added in the end.
_LONG_CHAIN = 64
# So many are added plainly first where that saves time.
_CHUNK = 32


class RowEmitter:
    """The state of writing one row kernel."""

    def __init__(self, kernel: Kernel, schedule: Schedule, lifted: bool) -> None:
        self.kernel, self.schedule = kernel, schedule
        self.body, self.outputs = open_body(kernel, lifted)
        self.team = Team(self.body, self.schedule)
        self.phases = phases_of(kernel)
        self.own = ""  # which invocations work on a row that exists; "": all

    def emit(self) -> Launch:
        schedule, body = self.schedule, self.body
        rows = self.kernel.domain.rows // schedule.row_width
        names = self._open(rows)
        self.rows = [at_row(row_index(schedule, self.kernel.domain.rows, name), self.kernel) for name in names]
        early = early_reads(self.kernel) if schedule.team > schedule.subgroup and not schedule.interleaved else []
        self._read([read for read in early if waits_for_none(read)])
        found = online_sum_of(self.kernel) if schedule.online else None
        if found is not None:
            self._reduce_online(found)
            self._read(early)
        for phase in range(2 if found is not None else 0, max(self.phases.values(), default=0)):
            self._reduce([node for node, of in self.phases.items() if of == phase + 1])
            self._read(early)
        self._write_rows()
        self._write_row_values()
        lines = body.scopes[0].lines
        local, lanes = (schedule.local, 1), schedule.subgroup or None
        text = ShaderText(body.uses, lines, local, self.team.declarations, lanes, shuffles=lanes is not None)
        groups = -(-rows * schedule.team // (schedule.local * schedule.strips))
        return Launch(assemble(text), tuple(body.parameters.words), grid(groups))

    def _open(self, rows: int) -> list[str]:
        """Finds out which rows an invocation works on, and which member of its team it is."""
        schedule, body = self.schedule, self.body
        if schedule.strips > 1:
            return open_strips(body, rows, schedule.local, schedule.strips)
        if schedule.interleaved:
            self._open_interleaved(rows)
        else:
            lane = None if schedule.local == schedule.subgroup else schedule.subgroup
            open_invocations(body, rows * schedule.team, schedule.local, "i", lane)
            if schedule.shared:
                body.line(f"int row = i / {schedule.team};")
                body.line(f"int lane_of_row = i % {schedule.team};")
        if schedule.shared:
            body.scopes[0].variables |= {"row"}
        return ["row" if schedule.shared else "i"]

    def _open_interleaved(self, rows: int) -> None:
        """All invocations go on to the end, since all of a workgroup must reach its barriers."""
        teams, bound = self.schedule.teams, self.body.parameters.integer(rows)
        self.body.line(f"int team = int({WORKGROUP} * {teams}u + gl_LocalInvocationID.x % {teams}u);")
        self.body.line(f"int row = min(team, {bound} - 1);")
        self.body.line(f"int lane_of_row = int(gl_LocalInvocationID.x / {teams}u);")
        self.own = f"team < {bound}"

    def _read(self, instances: list[tuple[Node, Coordinates]]) -> None:
        for row in self.rows:
            with self.body.at(row):
                for node, at in instances:
                    self.body.value(node, at)

    # -- walks over the row -------------------------------------------------------------------------------------------

    def _walk(
        self,
        visit: Callable[[int, str], None],
        chunk: Callable[[], AbstractContextManager[None]] | None = None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Visits the elements of each strip's row, with the condition that there is one more: "" if there always is.

        With `chunk` a loop goes from chunk to chunk of the row, each visited within that context. `after` follows on
        what is written out: all visits, or those of one turn of a loop.
        """
        schedule = self.schedule
        steps = schedule.steps(self.kernel.domain.length)
        stride = schedule.team * schedule.turns
        first = "lane_of_row" if schedule.shared else "0"
        bound = self.body.parameters.integer(steps)
        if not schedule.loop:
            for turn in range(schedule.turns):
                self._visit(turn, first, steps, bound, visit, always=schedule.team * (turn + 1) <= steps)
            after()
            return

        def walk(first: str, end: str) -> None:
            with self.body.block(f"for (int k = {first}; k < {end}; k += {stride})", frozenset(("k",))):
                self._visit_strips(variable("k", steps), visit, "")
                for turn in range(1, schedule.turns):
                    self._visit(turn, "k", steps, bound, visit, always=steps % stride == 0)
                after()

        if chunk is None:
            walk(first, bound)
            return
        length = _CHUNK * schedule.team  # in elements, or vectors of them
        with self.body.block(f"for (int chunk = {first}; chunk < {bound}; chunk += {length})"), chunk():
            self.body.line(f"int chunk_end = min(chunk + {length}, {bound});")
            walk("chunk", "chunk_end")

    def _visit(
        self, turn: int, first: str, steps: int, bound: str, visit: Callable[[int, str], None], *, always: bool
    ) -> None:
        """Visits the element that is `turn` turns after the first; beyond the last one, the last is read instead."""
        name = f"k{turn}"
        scope = self.body.scopes[-1]
        place = _sum(first, turn * self.schedule.team)
        if name not in scope.variables:
            self.body.line(f"int {name} = {place if always else f'min({place}, {bound} - 1)'};")
            scope.variables |= {name}
        self._visit_strips(variable(name, steps), visit, "" if always else f"{place} < {bound}")

    def _visit_strips(self, step: Index, visit: Callable[[int, str], None], condition: str) -> None:
        element = at_element(element_index(self.schedule, step), self.kernel)
        for strip, row in enumerate(self.rows):
            with self.body.at(row | element):
                visit(strip, condition)

    def _if(self, condition: str) -> AbstractContextManager[None]:
        return self.body.block(f"if ({condition})") if condition else nullcontext()

    # -- reductions ---------------------------------------------------------------------------------------------------

    def _reduce(self, reductions: list[Node]) -> None:
        width = max(self.schedule.row_width, self.schedule.element_width)
        registers = [{node: self._open_register(node, width) for node in reductions} for _ in self.rows]

        def take(strip: int, condition: str) -> None:
            for node in reductions:
                self._take(node, registers[strip][node], width, condition)

        chunked = [node for node in reductions if self._is_chunked(node)]

        @contextmanager
        def chunk() -> Iterator[None]:
            sums = [(of_row[node], type_name(node.dtype, width)) for of_row in registers for node in chunked]
            for name, kind in sums:
                self.body.line(f"{kind} {name}_chunk = {kind}(0);")
            yield
            for name, kind in sums:
                self._add_exactly(name, f"{name}_chunk", kind)

        self._walk(take, chunk if chunked else None)
        for row, of_row in zip(self.rows, registers, strict=True):
            partial = [(node, self._close_register(node, of_row[node], width)) for node in reductions]
            if self.schedule.shared:
                self.team.join(partial)
            with self.body.at(row):
                for node, name in partial:
                    self.body.define(node, self.kernel.places[node], Value(name, self.schedule.row_width))

    def _take(self, node: Node, name: str, width: int, condition: str) -> None:
        """Takes an element, or a vector of them, in."""
        at = operand_coordinates(node, self.kernel.places[node], self.kernel)
        value = self.body.value(node.operands[0], at)
        if node.op in POSITIONS:
            position = self.body.index_value(self.body.real(at[node.attrs["axis"]]))
            with self._if(condition):
                self._take_position(node, name, value, position)
            return
        taken = widened(value, width, node.dtype)
        with self._if(condition):
            if self._is_compensated(node) and not self._is_chunked(node):
                self._add_exactly(name, taken, type_name(node.dtype, width))
                return
            total, uses = f"{name}_chunk" if self._is_chunked(node) else name, self.body.uses
            self.body.line(f"{total} = {REDUCTIONS[node.op].join(total, taken, node.dtype, width, uses)};")

    def _open_register(self, node: Node, width: int) -> str:
        name = self.body.name()
        if node.op in POSITIONS:  # the best value, and where it stands
            best, position = (
                type_name(node.operands[0].dtype, self.schedule.row_width),
                type_name(node.dtype, self.schedule.row_width),
            )
            self.body.line(f"{best} {name}_best;")
            self.body.line(f"{position} {name} = {position}(-1);")
            return name
        kind = type_name(node.dtype, width)
        self.body.line(f"{kind} {name} = {kind}({REDUCTIONS[node.op].identity(node.dtype)});")
        if self._is_compensated(node):
            self.body.line(f"{kind} {name}_lost = {kind}(0);")
        return name

    def _is_compensated(self, node: Node) -> bool:
        """Whether so many floats are added one after the other that their rounding errors are added up as well."""
        additions = self.schedule.additions(self.kernel.domain.length)
        return node.op == "sum" and node.dtype.is_float and additions >= _LONG_CHAIN

    def _is_chunked(self, node: Node) -> bool:
        """Whether chunks of the floats are added plainly, and only the chunks' sums with their rounding errors."""
        return self.schedule.chunked and self.schedule.loop and self._is_compensated(node)

    def _add_exactly(self, name: str, taken: str, kind: str) -> None:
        """Knuth's sum of two floats: the rounded sum, and what rounding lost."""
        total, part, term, lost = (self.body.name() for _ in range(4))
        self.body.line(f"{kind} {term} = {taken};")
        self.body.line(f"precise {kind} {total} = {name} + {term};")
        self.body.line(f"precise {kind} {part} = {total} - {name};")
        self.body.line(f"precise {kind} {lost} = ({name} - ({total} - {part})) + ({term} - {part});")
        self.body.line(f"{name}_lost += {lost};")
        self.body.line(f"{name} = {total};")

    def _take_position(self, node: Node, name: str, value: Value, position: Value) -> None:
        """Element by element, in rising order: an element must be strictly better to win."""
        wide = max(self.schedule.row_width, self.schedule.element_width)
        whole = self.body.name()
        self.body.line(
            f"{type_name(node.operands[0].dtype, wide)} {whole} = {widened(value, wide, node.operands[0].dtype)};"
        )
        places = self.body.name()
        self.body.line(f"{type_name(node.dtype, wide)} {places} = {widened(position, wide, node.dtype)};")
        for lane in COMPONENTS if wide == VECTOR else [""]:
            dot = f".{lane}" if lane else ""
            of_register = dot if self.schedule.row_width == VECTOR else ""
            best, found = f"{name}_best{of_register}", f"{name}{of_register}"
            test = f"{found} < 0 || {beats(node, whole + dot, best, self.body.uses)}"
            self.body.line(f"if ({test}) {{ {best} = {whole}{dot}; {found} = {places}{dot}; }}")

    def _close_register(self, node: Node, name: str, width: int) -> str:
        """The name of what an invocation has reduced by itself."""
        if node.op in POSITIONS:
            return name
        reduction = REDUCTIONS[node.op]
        if self._is_compensated(node):  # an infinite sum has lost nothing that has a number
            lost, zero = f"{name}_lost", literal(0.0, node.dtype)
            for component in (f".{c}" for c in COMPONENTS) if width == VECTOR else ("",):
                finite = f"abs({name}{component}) < {INFINITY}"
                self.body.line(f"{name}{component} += mix({zero}, {lost}{component}, {finite});")
        if self.schedule.element_width < VECTOR:
            return name
        whole, name = name, self.body.name()

        def join(left: str, right: str) -> str:
            return reduction.join(left, right, node.dtype, 1, self.body.uses)

        halves = (join(f"{whole}.{a}", f"{whole}.{b}") for a, b in ("xy", "zw"))
        self.body.line(f"{type_name(node.dtype, 1)} {name} = {join(*halves)};")
        return name

    def _reduce_online(self, found: OnlineSum) -> None:
        """The first two phases in one walk."""
        body, width, at = self.body, self.schedule.element_width, self.kernel.places
        kind = type_name(found.total.dtype, width)
        total = self._open_register(found.total, width)
        registers = OnlineRegisters(body.name(), body.name(), total, body.uses)
        for line in registers.opened():
            body.line(line)
        values: list[str] = []

        def take(_: int, condition: str) -> None:
            place = operand_coordinates(found.greatest, at[found.greatest], self.kernel)
            value = widened(body.value(found.x, place), width, found.total.dtype)
            values.append(body.name() if condition else value)
            for line in registers.masked(values[-1], value, condition, kind) if condition else ():
                body.line(line)

        def add_up() -> None:
            top, part = body.name(), body.name()
            for line in registers.shifted(values, width, top, self._is_compensated(found.total)):
                body.line(line)
            body.line(f"{kind} {part} = {registers.part(values)};")
            if self._is_compensated(found.total):
                self._add_exactly(total, part, kind)
            else:
                body.line(f"{total} += {part};")
            for line in registers.peaked(values, width, top, part):
                body.line(line)

        self._walk(take, after=add_up)
        self._join_online(found, registers, self._close_register(found.total, total, width))

    def _join_online(self, found: OnlineSum, registers: OnlineRegisters, total: str) -> None:
        """First the maximum, which the subtrahend is made of, then the sums relative to it."""
        body, at = self.body, self.kernel.places
        (row,) = self.rows
        with body.at(row):
            self.team.join([(found.greatest, registers.peak)])
            body.define(found.greatest, at[found.greatest], Value(registers.peak, 1))
            subtrahend = body.value(*found.subtrahend).text
            body.line(registers.closed(subtrahend, total))
            self.team.join([(found.total, total)])
            for line in registers.ended(subtrahend, total):
                body.line(line)
            body.define(found.total, at[found.total], Value(total, 1))

    # -- results ------------------------------------------------------------------------------------------------------

    def _write_rows(self) -> None:
        whole = [output for output in self.kernel.graph.outputs if not self.kernel.is_row_level(output)]
        if whole:
            self._walk(lambda _, condition: self._write(whole, " && ".join(filter(None, (self.own, condition)))))

    def _write_row_values(self) -> None:
        single = [output for output in self.kernel.graph.outputs if self.kernel.is_row_level(output)]
        first = "lane_of_row == 0" if self.schedule.shared else ""
        for row in self.rows if single else ():
            with self.body.at(row):
                self._write(single, " && ".join(filter(None, (self.own, first))))

    def _write(self, outputs: list[Node], condition: str) -> None:
        places = self.kernel.places
        results = {output: self.body.value(output, places[output]) for output in outputs}
        with self._if(condition):
            for output, result in results.items():
                self.body.store(output, places[output], result, self.outputs[output])


def _sum(text: str, number: int) -> str:
    if text == "0" or not number:
        return str(number) if text == "0" else text
    return f"{text} + {number}"


def emit_row(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: Schedule | None = None) -> Launch:
    """The shader of a row kernel, by that schedule or the one that suits its sizes."""
    return RowEmitter(kernel, schedule or choose_schedule(kernel, profile, lifted), lifted).emit()
