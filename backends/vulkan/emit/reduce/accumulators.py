"""Accumulators: the variables in which an invocation reduces its elements of a row.

Long sums of floats are compensated: what each addition loses to rounding is added up as well, and added in the end.
Where schedules say so, chunks of elements are added plainly, and only the chunks' sums with their rounding errors.
"""

from __future__ import annotations

from collections.abc import Collection

from lavax.backends.vulkan.emit.reduce.row_schedule import RowSchedule
from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, INFINITY, VECTOR, literal, type_name
from lavax.backends.vulkan.glsl.lanes import GlslValue, widened
from lavax.backends.vulkan.glsl.reductions import POSITIONS, REDUCTIONS, beats
from lavax.ir.graph import Node

# Sums of so many elements, added one after the other, are compensated.
_LONG_CHAIN = 64


class Accumulators:
    """Writes the accumulators of one kernel; `length` is that of its rows.

    `shared` reductions have one result for all rows of a vector.
    """

    def __init__(self, body: Body, schedule: RowSchedule, length: int, shared: Collection[Node]) -> None:
        self.body, self.schedule, self.length, self.shared = body, schedule, length, shared
        self.width = max(schedule.row_width, schedule.element_width)

    def width_of(self, node: Node) -> int:
        """The width of a reduction's accumulator."""
        return 1 if node in self.shared else self.width

    def is_compensated(self, node: Node) -> bool:
        return node.op == "sum" and node.dtype.is_float and self.schedule.additions(self.length) >= _LONG_CHAIN

    def is_chunked(self, node: Node) -> bool:
        return self.schedule.chunked and self.schedule.loop and self.is_compensated(node)

    def open(self, node: Node) -> str:
        """Declares a reduction's accumulator; its name."""
        name, width = self.body.name(), self.width_of(node)
        if node.op in POSITIONS:
            self._open_position(node, name)
            return name
        kind = type_name(node.dtype, width)
        self.body.line(f"{kind} {name} = {kind}({REDUCTIONS[node.op].identity(node.dtype)});")
        if self.is_compensated(node):
            self.body.line(f"{kind} {name}_lost = {kind}(0);")
        return name

    def _open_position(self, node: Node, name: str) -> None:
        """The best value so far, and its position."""
        best = type_name(node.operands[0].dtype, self.schedule.row_width)
        position = type_name(node.dtype, self.schedule.row_width)
        self.body.line(f"{best} {name}_best;")
        self.body.line(f"{position} {name} = {position}(-1);")

    def take(self, node: Node, name: str, value: GlslValue) -> None:
        """Adds an element, or a vector of them, to the accumulator of that name."""
        width = self.width_of(node)
        taken = widened(value, width, node.dtype) if value.width <= width else f"({value.text}).x"
        if self.is_compensated(node) and not self.is_chunked(node):
            self.add_exactly(name, taken, type_name(node.dtype, width))
            return
        total = f"{name}_chunk" if self.is_chunked(node) else name
        joined = REDUCTIONS[node.op].join(total, taken, node.dtype, width, self.body.uses)
        self.body.line(f"{total} = {joined};")

    def take_end(self, node: Node, name: str, value: GlslValue) -> None:
        """Adds a single element to an accumulator that holds nothing yet, so that nothing is lost to rounding."""
        part = f"{name}.x" if self.width_of(node) == VECTOR else name
        joined = REDUCTIONS[node.op].join(part, widened(value, 1, node.dtype), node.dtype, 1, self.body.uses)
        self.body.line(f"{part} = {joined};")

    def add_exactly(self, name: str, taken: str, kind: str) -> None:
        """Knuth's sum of two floats: the rounded sum, and what rounding lost."""
        total, part, term, lost = (self.body.name() for _ in range(4))
        self.body.line(f"{kind} {term} = {taken};")
        self.body.line(f"precise {kind} {total} = {name} + {term};")
        self.body.line(f"precise {kind} {part} = {total} - {name};")
        self.body.line(f"precise {kind} {lost} = ({name} - ({total} - {part})) + ({term} - {part});")
        self.body.line(f"{name}_lost += {lost};")
        self.body.line(f"{name} = {total};")

    def take_position(self, node: Node, name: str, value: GlslValue, position: GlslValue) -> None:
        """Compares element by element in rising order; an element must be strictly better to win."""
        dtype = node.operands[0].dtype
        whole = self.body.name()
        self.body.line(f"{type_name(dtype, self.width)} {whole} = {widened(value, self.width, dtype)};")
        positions = self.body.name()
        text = widened(position, self.width, node.dtype)
        self.body.line(f"{type_name(node.dtype, self.width)} {positions} = {text};")
        for component in COMPONENTS if self.width == VECTOR else [""]:
            dot = f".{component}" if component else ""
            of_accumulator = dot if self.schedule.row_width == VECTOR else ""
            best, found = f"{name}_best{of_accumulator}", f"{name}{of_accumulator}"
            test = f"{found} < 0 || {beats(node, whole + dot, best, self.body.uses)}"
            self.body.line(f"if ({test}) {{ {best} = {whole}{dot}; {found} = {positions}{dot}; }}")

    def close(self, node: Node, name: str) -> str:
        """The name of the invocation's own result, which is no vector of elements any more."""
        if node.op in POSITIONS:
            return name
        if self.is_compensated(node):
            self._add_lost(node, name, self.width_of(node))
        return self._joined_components(node, name) if self.schedule.element_width == VECTOR else name

    def _add_lost(self, node: Node, name: str, width: int) -> None:
        """Adds what rounding lost, unless the sum is infinite: then that is no number."""
        lost, zero = f"{name}_lost", literal(0.0, node.dtype)
        for component in (f".{c}" for c in COMPONENTS) if width == VECTOR else ("",):
            finite = f"abs({name}{component}) < {INFINITY}"
            self.body.line(f"{name}{component} += mix({zero}, {lost}{component}, {finite});")

    def _joined_components(self, node: Node, whole: str) -> str:
        name = self.body.name()

        def join(left: str, right: str) -> str:
            return REDUCTIONS[node.op].join(left, right, node.dtype, 1, self.body.uses)

        halves = (join(f"{whole}.{a}", f"{whole}.{b}") for a, b in ("xy", "zw"))
        self.body.line(f"{type_name(node.dtype, 1)} {name} = {join(*halves)};")
        return name
