"""Row kernels: reductions, and what is computed from them over the same rows.

Reductions that depend on each other are done in phases, each one loop over the row; whole rows are written in a
last loop. Two schedules: *subgroup*, where the lanes of one subgroup share a row whose elements are neighbours in
memory; and *single*, where each invocation has a row, or four neighbouring rows, of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lavax.backends.vulkan.emit.body import LANE, Value, widened
from lavax.backends.vulkan.emit.expressions import COMPONENTS, VECTOR, literal, type_name
from lavax.backends.vulkan.emit.launch import (
    Launch,
    at_element,
    at_row,
    grid,
    local_invocations,
    open_body,
    open_invocations,
    placed,
)
from lavax.backends.vulkan.emit.reductions import POSITIONS, REDUCTIONS, beats, shuffled, ties
from lavax.backends.vulkan.emit.shader import ShaderText, assemble
from lavax.backends.vulkan.plan import Shader
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir.graph import INPUT, Node
from lavax.passes.kernels.accesses import accesses, operand_coordinates, roots_of
from lavax.passes.kernels.index import Index, Variable, linear, variable
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.loop_limit import MOST_TURNS
from lavax.passes.kernels.reads import READS, Coordinates

# From this many additions one after the other on, what rounding loses is kept and added in the end.
_LONG_CHAIN = 64
_INFINITY = "uintBitsToFloat(0x7f800000u)"


@dataclass(frozen=True)
class Schedule:
    """How rows are shared out. `row_width` and `element_width` are 1 or 4; one of them is 1."""

    shared: bool  # a subgroup a row
    row_width: int
    element_width: int
    local: int


class RowEmitter:
    """The state of writing one row kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.kernel = kernel
        self.schedule = choose_schedule(kernel, profile)
        self.body, self.outputs = open_body(kernel, lifted)
        self.phases = phases_of(kernel)

    def emit(self) -> Launch:
        schedule, body = self.schedule, self.body
        rows = self.kernel.domain.rows // schedule.row_width
        invocations = rows * (schedule.local if schedule.shared else 1)
        open_invocations(body, invocations, schedule.local, "i")
        if schedule.shared:
            body.line(f"int row = i / {schedule.local};")
            body.line(f"int lane_of_row = i % {schedule.local};")
            body.scopes[0].variables |= {"row"}
        row = variable("row" if schedule.shared else "i", rows)
        self.row = at_row(linear([(row, VECTOR), (LANE, 1)]) if schedule.row_width == VECTOR else row, self.kernel)
        with body.at(self.row):
            for phase in range(max(self.phases.values(), default=0)):
                self._reduce([node for node, of in self.phases.items() if of == phase + 1])
            self._write_rows()
            self._write_row_values()
        text = ShaderText(body.scopes[0].lines, (schedule.local, 1), subgroup=schedule.shared)
        shader = Shader(assemble(text), subgroup_size=schedule.local if schedule.shared else None)
        return Launch(shader, tuple(body.parameters.words), grid(-(-invocations // schedule.local)))

    @contextmanager
    def _elements(self) -> Iterator[None]:
        """A loop over the row's elements."""
        width = self.schedule.element_width
        steps = self.kernel.domain.length // width
        start, step = ("lane_of_row", self.schedule.local) if self.schedule.shared else ("0", 1)
        bound = self.body.parameters.integer(steps)
        head = f"for (int k = {start}; k < {bound}; k += {step})"
        step_index = variable("k", steps)
        element = linear([(step_index, VECTOR), (LANE, 1)]) if width == VECTOR else step_index
        inside = self.row | at_element(element, self.kernel)
        with self.body.block(head, frozenset(("k",))), self.body.at(inside):
            yield

    # -- reductions ---------------------------------------------------------------------------------------------------

    def _reduce(self, reductions: list[Node]) -> None:
        width = max(self.schedule.row_width, self.schedule.element_width)
        registers = {node: self._open_register(node, width) for node in reductions}
        with self._elements():
            for node in reductions:
                at = operand_coordinates(node, self.kernel.places[node], self.kernel)
                value = self.body.value(node.operands[0], at)
                if node.op in POSITIONS:
                    self._take_position(node, registers[node], value, at[node.attrs["axis"]])
                else:
                    taken = widened(value, width, node.dtype)
                    name = registers[node]
                    if self._is_compensated(node):
                        self._add_exactly(name, taken, type_name(node.dtype, width))
                        continue
                    self.body.line(f"{name} = {REDUCTIONS[node.op].join(name, taken, node.dtype, width)};")
        for node in reductions:
            result = self._close_register(node, registers[node], width)
            self.body.define(node, self.kernel.places[node], result)

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
        steps = self.kernel.domain.length // self.schedule.element_width
        if self.schedule.shared:
            steps //= self.schedule.local
        return node.op == "sum" and node.dtype.is_float and steps >= _LONG_CHAIN

    def _add_exactly(self, name: str, taken: str, kind: str) -> None:
        """Knuth's sum of two floats: the rounded sum, and what rounding lost."""
        total, part, term = (self.body.name() for _ in range(3))
        self.body.line(f"{kind} {term} = {taken};")
        self.body.line(f"precise {kind} {total} = {name} + {term};")
        self.body.line(f"precise {kind} {part} = {total} - {name};")
        self.body.line(f"precise {kind} {name}_error = ({name} - ({total} - {part})) + ({term} - {part});")
        self.body.line(f"{name}_lost += {name}_error;")
        self.body.line(f"{name} = {total};")

    def _take_position(self, node: Node, name: str, value: Value, place: Index) -> None:
        """Element by element, in rising order: an element must be strictly better to win."""
        position = self.body.index_value(self.body.real(place))
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
            test = f"{found} < 0 || {beats(node, whole + dot, best)}"
            self.body.line(f"if ({test}) {{ {best} = {whole}{dot}; {found} = {places}{dot}; }}")

    def _close_register(self, node: Node, name: str, width: int) -> Value:
        if node.op in POSITIONS:
            if self.schedule.shared:
                self._share_position(node, name)
            return Value(name, self.schedule.row_width)
        reduction = REDUCTIONS[node.op]
        if self._is_compensated(node):  # an infinite sum has lost nothing that has a number
            lost, zero = f"{name}_lost", literal(0.0, node.dtype)
            for component in (f".{c}" for c in COMPONENTS) if width == VECTOR else ("",):
                finite = f"abs({name}{component}) < {_INFINITY}"
                self.body.line(f"{name}{component} += mix({zero}, {lost}{component}, {finite});")
        if width == VECTOR and self.schedule.element_width == VECTOR:
            whole, name = name, self.body.name()
            first, second = (reduction.join(f"{whole}.{a}", f"{whole}.{b}", node.dtype, 1) for a, b in ("xy", "zw"))
            self.body.line(f"{type_name(node.dtype, 1)} {name} = {reduction.join(first, second, node.dtype, 1)};")
        if self.schedule.shared:
            for step in self._butterfly():
                other = shuffled("subgroupShuffleXor", name, f"{step}u", node.dtype)
                self.body.line(f"{name} = {reduction.join(name, other, node.dtype, 1)};")
        return Value(name, self.schedule.row_width)

    def _butterfly(self) -> Iterator[int]:
        """Exchange distances after which every lane of a subgroup has the same result."""
        step = 1
        while step < self.schedule.local:
            yield step
            step *= 2

    def _share_position(self, node: Node, name: str) -> None:
        best = f"{name}_best"
        kind = type_name(node.operands[0].dtype, 1)
        for step in self._butterfly():
            value, place = self.body.name(), self.body.name()
            other = shuffled("subgroupShuffleXor", best, f"{step}u", node.operands[0].dtype)
            self.body.line(f"{kind} {value} = {other};")
            self.body.line(f"int {place} = subgroupShuffleXor({name}, {step}u);")
            better = f"{name} < 0 || {beats(node, value, best)} || ({ties(node, value, best)} && {place} < {name})"
            self.body.line(f"if ({place} >= 0 && ({better})) {{ {best} = {value}; {name} = {place}; }}")

    # -- results ------------------------------------------------------------------------------------------------------

    def _write_rows(self) -> None:
        whole = [output for output in self.kernel.graph.outputs if not self.kernel.is_row_level(output)]
        if not whole:
            return
        with self._elements():
            self._write(whole)

    def _write_row_values(self) -> None:
        single = [output for output in self.kernel.graph.outputs if self.kernel.is_row_level(output)]
        if not single:
            return
        if self.schedule.shared:
            with self.body.block("if (lane_of_row == 0)"):
                self._write(single)
        else:
            self._write(single)

    def _write(self, outputs: list[Node]) -> None:
        places = self.kernel.places
        results = {output: self.body.value(output, places[output]) for output in outputs}
        for output, result in results.items():
            self.body.store(output, places[output], result, self.outputs[output])


def emit_row(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a row kernel."""
    return RowEmitter(kernel, profile, lifted).emit()


def phases_of(kernel: Kernel) -> dict[Node, int]:
    """For each reduction, the loop it is done in, from 1: after all reductions it depends on."""
    depth: dict[Node, int] = {}
    phases: dict[Node, int] = {}
    for node in kernel.graph.nodes:
        depth[node] = max((depth.get(operand, 0) for operand in node.operands if operand.op != INPUT), default=0)
        if node.op not in READS:
            depth[node] += 1
            phases[node] = depth[node]
    return phases


def choose_schedule(kernel: Kernel, profile: DeviceProfile) -> Schedule:
    """A subgroup a row where that reads neighbours and rows are long enough to share."""
    rows, length = kernel.domain.rows, kernel.domain.length
    subgroup = profile.subgroup_size
    along_row, along_rows = _unit_strides(kernel)
    long_enough = length >= 2 * subgroup or (length >= subgroup and rows < 4 * subgroup)
    too_long = length * (1 + max(phases_of(kernel).values(), default=0)) > MOST_TURNS
    if profile.subgroup_shuffle and ((long_enough and (along_row >= along_rows or rows < subgroup)) or too_long):
        element_width = VECTOR if length % VECTOR == 0 and along_row >= along_rows else 1
        return Schedule(True, 1, element_width, subgroup)
    row_width = VECTOR if rows % VECTOR == 0 and along_rows > 0 and rows > VECTOR * subgroup else 1
    element_width = VECTOR if row_width == 1 and length % VECTOR == 0 and along_row > 0 else 1
    return Schedule(False, row_width, element_width, local_invocations(profile))


def _unit_strides(kernel: Kernel) -> tuple[int, int]:
    """How many reads go to neighbours from element to element of a row, and from row to row."""
    element, row = variable("k", kernel.domain.length), variable("row", kernel.domain.rows)
    values = at_row(row, kernel) | at_element(element, kernel)
    roots: list[tuple[Node, Coordinates]] = [(node, placed(at, values)) for node, at in roots_of(kernel)]
    positions = [index for found in accesses(kernel, roots).values() for index in found]
    return sum(_grows_by_one(index, "k") for index in positions), sum(
        _grows_by_one(index, "row") for index in positions
    )


def _grows_by_one(index: Index, name: str) -> bool:
    """Whether the innermost part of the variable has stride 1."""
    for atom, coefficient in index.terms:
        if coefficient == 1 and name in atom.variables:
            return isinstance(atom, Variable) or atom.key.startswith(f"({name})%")
    return False
