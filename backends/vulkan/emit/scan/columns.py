"""Scans whose invocations walk over lines by themselves: each has a chunk of a line, or of four neighbouring lines."""

from __future__ import annotations

from lavax.backends.vulkan.emit.scan.lines import lines_of
from lavax.backends.vulkan.emit.scan.schedule import Columns
from lavax.backends.vulkan.glsl.expressions import VECTOR, type_name
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


class ColumnsEmitter:
    """The state of writing one kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, columns: Columns) -> None:
        (node,) = kernel.graph.outputs
        self.lines, self.columns = lines_of(node), columns
        self.routine = open_routine(kernel, profile, lifted)
        self.body, self.dtype = self.routine.body, node.dtype
        self.kind = type_name(node.dtype, columns.width)

    def emit(self) -> Launch:
        lines, body = self.lines, self.body
        groups = lines.count // self.columns.width
        part, group = unflatten(self.routine.open(lines.parts * groups), (lines.parts, groups))
        line = linear([(group, VECTOR), (LANE, 1)]) if self.columns.width == VECTOR else group
        length, chunk = (body.parameters.integer(size) for size in (lines.length, min(lines.chunk, lines.length)))
        body.line(f"int first = {body.index(part)} * {chunk}, end = min(first + {chunk}, {length});")
        if lines.starts is not None:
            start = self._widened(body.value(lines.starts, lines.at(line, part)))
            body.line(f"{self.kind} start = {start};")
        body.line(f"{self.kind} total = {self._widened(GlslValue(lines.identity(), 1))};")
        with body.block(f"for (int k = first; k < end; k += {self.columns.ahead})"):
            self._fold(line)
        if lines.wholes:
            self._store(lines.at(line, part))
        return self.routine.close(lines.parts * groups)

    def _fold(self, line: Index) -> None:
        """Folds the elements from `k` on, and writes each partial fold if the kernel does."""
        lines, body, ahead = self.lines, self.body, self.columns.ahead
        found: list[tuple[Coordinates, str]] = []
        for number in range(ahead):
            text = f"min(k + {number}, end - 1)" if number else "k"
            step = self.routine.position(f"step{number}", text, lines.length)
            along = linear([(step, -1)], lines.length - 1) if lines.reverse else step
            at = lines.at(line, along)
            found.append((at, self._widened(body.value(lines.array, at))))
        for number, (at, value) in enumerate(found):
            with body.block(f"if (k + {number} < end)" if number else ""):
                body.line(f"total = {lines.joined('total', value, body.uses, self.columns.width)};")
                if not lines.wholes:
                    self._store(at)

    def _widened(self, value: GlslValue) -> str:
        return widened(value, self.columns.width, self.dtype)

    def _store(self, at: Coordinates) -> None:
        """Joins the chunk's start last, so that sums round it once."""
        width = self.columns.width
        text = "total" if self.lines.starts is None else self.lines.joined("start", "total", self.body.uses, width)
        self.body.store(self.routine.node, at, GlslValue(text, width), self.routine.target)


def emit_columns(kernel: Kernel, profile: DeviceProfile, lifted: bool, columns: Columns) -> Launch:
    """The shader of a scan whose invocations have lines of their own."""
    return ColumnsEmitter(kernel, profile, lifted, columns).emit()
