"""Updates that are rows, joined to their places in memory: the shader of join_rows.

The lanes of a subgroup stand side by side along a row, so that no two of them touch one element, and go through all
updates in their order. Subgroups share the columns; where these are few, they also share the places.
"""

from __future__ import annotations

from dataclasses import replace

from lavax.backends.vulkan.emit.map.kernel import emit_copy
from lavax.backends.vulkan.emit.scatter.lines import JOINS
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, linear
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class RowOwners:
    """Chosen by `python -m benchmarks selection`."""

    enough: int = 4  # subgroups that keep a device busy; each reads all places


ROW_OWNERS = RowOwners()
# Updates of each lane that are looked at together.
_TOGETHER = 4


class _Rows:
    """The state of writing the kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.lanes = profile.subgroup_size
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, self.lanes)
        self.body = self.routine.body
        self.body.memory.write_descriptors.pop(self.routine.target, None)  # what is read by address is written so, too
        self.array, self.updates, self.places = self.routine.operands
        self.count, self.extent = self.updates.shape
        self.width = VECTOR if not lifted and self.extent % VECTOR == 0 else 1
        self.cells = self.extent // self.width
        self.strips = -(-self.cells // self.lanes)
        self.owners = -(-ROW_OWNERS.enough // self.strips)

    def emit(self) -> Launch:
        self.body.uses.extension("ballot")
        routine, body, lanes = self.routine, self.body, self.lanes
        routine.open(self.owners * self.strips * lanes)
        routine.integer("count", self.count)
        routine.integer("rows", self.array.shape[0])
        routine.integer("cells", self.cells)
        routine.integer("strips", self.strips)
        routine.integer("owners", self.owners)
        body.line(f"int part = i / {lanes}, lane = i % {lanes};")
        body.line("int share = (rows + owners - 1) / owners;")
        body.line("int low = part / strips * share, high = min(low + share, rows);")
        body.line(f"int own_cell = part % strips * {lanes} + lane;")
        cell = routine.position("cell", "min(own_cell, cells - 1)", self.cells)
        # Reads and writes have an index each, as where glsl/accesses.py adds bits that are 0.
        body.line(f"int spare = {body.parameters.unknown(0)};")
        with body.block(f"for (int first = 0; first < count; first += {lanes * _TOGETHER})"):
            body.line("uint left = 0u;")
            for number in range(_TOGETHER):
                with body.block(""):
                    at = routine.position("at", f"min(first + {number * lanes} + lane, count - 1)", self.count)
                    body.line(f"int row = {routine.read(self.places, (at,))};")
                    body.line(f"bool is_own = first + {number * lanes} + lane < count && row >= low && row < high;")
                    body.line(f"left |= subgroupBallot(is_own).x << {number * lanes}u;")
            with body.block("while (left != 0u)"):
                at = routine.position("at", "min(first + findLSB(left), count - 1)", self.count)
                body.line("left &= left - 1u;")
                self._join(at, cell)
        return routine.close(self.owners * self.strips * lanes, subgroup=True)

    def _join(self, at: Index, cell: Index) -> None:
        """Joins one update."""
        body, routine = self.body, self.routine
        place = routine.read(self.places, (at,))
        row = routine.position("row", f"clamp({place}, 0, rows - 1)", self.array.shape[0])
        column = cell if self.width == 1 else linear([(cell, VECTOR), (LANE, 1)])
        update = widened(body.value(self.updates, (at, column)), self.width, self.updates.dtype)
        is_set = routine.node.attrs["join"] == "set"
        result = GlslValue(update if is_set else self._joined(row, cell, update), self.width)
        with body.block("if (own_cell < cells)"):
            body.store(routine.node, (row, column), result, routine.target)

    def _joined(self, row: Index, cell: Index, update: str) -> str:
        body, node = self.body, self.routine.node
        position = f"{body.index(linear([(row, self.cells), (cell, 1)]))} + spare"
        read = body.memory.loaded if self.width == 1 else body.memory.four
        held = body.memory.as_read(read(node.dtype, self.routine.target, position), self.width, node.dtype)
        return JOINS[node.attrs["join"]](held, update, node.dtype, body.uses)


def emit_join_rows(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shaders of join_rows: the array is copied first."""
    (node,) = kernel.graph.outputs
    copied = emit_copy(kernel, node.operands[0], profile, lifted)
    return replace(_Rows(kernel, profile, lifted).emit(), before=copied)
