"""Triangular systems by substitution: one invocation per right side, or a workgroup or subgroup if they are few."""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import is_one_subgroup
from lavax.backends.vulkan.emit.linalg.triangular_solve_ahead import solve_ahead, suits_solving_ahead
from lavax.backends.vulkan.emit.linalg.triangular_solve_by_subgroups import solve_by_subgroups, suits_subgroups
from lavax.backends.vulkan.emit.linalg.triangular_solve_in_shared_memory import (
    solve_in_shared_memory,
    suits_shared_memory,
)
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.types import TensorType
from lavax.passes.kernels.index import Index, flatten, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates

_GPU_LOCAL = 128


class SubstitutionEmitter:
    """The state of writing one triangular solve: `steps` unknowns are found in order of `k`, each at the row `at`."""

    def __init__(self, routine: RoutineShader) -> None:
        self.routine, self.body = routine, routine.body
        self.matrix, self.right = routine.operands
        attrs = routine.node.attrs
        self.transposed, self.unit_diagonal = attrs["transposed"], attrs["unit_diagonal"]
        self.forwards = attrs["lower"] != attrs["transposed"]
        self.steps = self.right.shape[-2]
        self.real = type_name(routine.node.dtype, 1)
        self.batch: Coordinates
        self.column: Index

    def _row(self, name: str, step: str) -> Index:
        """The row of that step's unknown."""
        return self.routine.position(name, step if self.forwards else f"steps - 1 - {step}", self.steps)

    def _factor(self, row: Index, column: Index) -> str:
        """The triangle's element."""
        place = (column, row) if self.transposed else (row, column)
        return self.routine.read(self.matrix, (*self.batch, *place))

    def _place(self, row: Index) -> Coordinates:
        return (*self.batch, row, self.column)

    def _unknown(self, row: Index) -> str:
        return self.routine.element(flatten(self._place(row), self.right.shape))

    def _divided(self, text: str, row: Index) -> str:
        return text if self.unit_diagonal else f"{text} / {self._factor(row, row)}"

    def emit_single(self) -> Launch:
        """One invocation per right side, which reads only its own results."""
        sides = (*self.right.shape[:-2], self.right.shape[-1])
        count = TensorType(sides, self.right.dtype).size
        *batch, self.column = self.routine.open_elements(sides)
        self.batch = tuple(batch)
        self.routine.integer("steps", self.steps)
        with self.body.block("for (int k = 0; k < steps; ++k)"):
            row = self._row("at", "k")
            self.body.line(f"{self.real} sum = {self.routine.read(self.right, self._place(row))};")
            with self.body.block("for (int j = 0; j < k; ++j)"):
                earlier = self._row("earlier", "j")
                self.body.line(f"sum -= {self._factor(row, earlier)} * {self._unknown(earlier)};")
            self.body.line(f"{self._unknown(row)} = {self._divided('sum', row)};")
        return self.routine.close(count)

    def emit_subgroup(self) -> Launch:
        """One subgroup of a CPU driver per right side, which adds up a row's products with what is known.

        Each unknown is written once: a store is a loop over the lanes, and a shuffle is not.
        """
        local = self.routine.local
        count = self._open_sides()
        with self.body.block("for (int k = 0; k < steps; ++k)"):
            row = self._row("at", "k")
            self.body.line(f"{self.real} sum = {literal(0.0, self.routine.node.dtype)};")
            with self.body.block(f"for (int j = own; j < k; j += {local})"):
                earlier = self._row("earlier", "j")
                self.body.line(f"sum += {self._factor(row, earlier)} * {self._unknown(earlier)};")
            with self.body.block(f"for (int width = {local // 2}; width > 0; width /= 2)"):
                self.body.line("sum += subgroupShuffleXor(sum, uint(width));")
            rest = f"({self.routine.read(self.right, self._place(row))} - sum)"
            self.body.line(f"if (own == 0) {self._unknown(row)} = {self._divided(rest, row)};")
            self.body.line("subgroupBarrier();")
        return self.routine.close(count * local, subgroup=True)

    def _open_sides(self) -> int:
        """Begins a shader with a workgroup for each right side, and returns how many there are."""
        local = self.routine.local
        sides = (*self.right.shape[:-2], self.right.shape[-1])
        count = TensorType(sides, self.right.dtype).size
        self.routine.open(count * local)
        *batch, self.column = unflatten(self.routine.position("side", f"i / {local}", count), sides)
        self.batch = tuple(batch)
        self.body.line(f"int own = i % {local};")
        self.routine.integer("steps", self.steps)
        return count

    def emit_shared(self) -> Launch:
        """One workgroup per right side: it eliminates each unknown, once known, from all later rows."""
        local, meet = self.routine.local, "memoryBarrierBuffer(); barrier();"
        count = self._open_sides()
        with self.body.block(f"for (int k = own; k < steps; k += {local})"):
            row = self._row("at", "k")
            self.body.line(f"{self._unknown(row)} = {self.routine.read(self.right, self._place(row))};")
        with self.body.block("for (int k = 0; k < steps - 1; ++k)"):
            self.body.line(meet)
            row = self._row("at", "k")
            self.body.line(f"{self.real} known = {self._divided(self._unknown(row), row)};")
            with self.body.block(f"for (int j = k + 1 + own; j < steps; j += {local})"):
                later = self._row("later", "j")
                self.body.line(f"{self._unknown(later)} -= {self._factor(later, row)} * known;")
        if not self.unit_diagonal:
            self.body.line(meet)
            with self.body.block(f"for (int k = own; k < steps; k += {local})"):
                row = self._row("at", "k")
                self.body.line(f"{self._unknown(row)} = {self._divided(self._unknown(row), row)};")
        return self.routine.close(count * local)


def emit_triangular_solve(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of triangular_solve."""
    if suits_solving_ahead(kernel, profile):
        return solve_ahead(kernel, profile)
    if suits_subgroups(kernel, profile):
        return solve_by_subgroups(kernel, profile)
    if suits_shared_memory(kernel, profile):
        return solve_in_shared_memory(kernel, profile, lifted)
    (node,) = kernel.graph.outputs
    right = node.operands[1]
    local = profile.subgroup_size if profile.kind == "cpu" else _GPU_LOCAL
    if right.type.size // right.shape[-2] >= local:
        return SubstitutionEmitter(open_routine(kernel, profile, lifted)).emit_single()
    shared = SubstitutionEmitter(open_routine(kernel, profile, lifted, local))
    return shared.emit_subgroup() if is_one_subgroup(profile, local) else shared.emit_shared()
