"""Kernels that factor matrices: one workgroup per matrix, which works in the result's memory.

The algorithm is GLSL text, the same for float32 and float64: `real` is the matrix's dtype. It may use the sizes it asks
for by name, `lane` of `LOCAL` invocations, the matrix's part of the result as `x.data[…]`, `meet()` (a barrier after
which all see the others' writes), `meet_shared()` (for writes to shared memory alone), and `total(part)` and
`largest(part)`, which fold one number of each invocation in the same order on every run.

On a CPU driver a workgroup is one subgroup. It meets without a barrier of the workgroup, for which such drivers leave
the shader and come back.
"""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.ops.linear_algebra import parts_of
from lavax.passes.kernels.index import Index, unflatten, variable
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class MatrixWorkgroup:
    """Invocations of a workgroup. No workload of `python -m benchmarks` factors matrices: these are not tuned."""

    cpu: int = 8  # at least, so that no loop takes more iterations than `passes/prepare/decompose` allows for
    gpu: int = 128


MATRIX_WORKGROUP = MatrixWorkgroup()
_FOLD = """real NAME(real part) {
    folded[lane] = part;
    for (int width = LOCAL / 2; width > 0; width /= 2) {
        barrier();
        if (lane < width) folded[lane] = JOIN;
    }
    barrier();
    real whole = folded[0];
    barrier();
    return whole;
}"""
# The first lane joins the same numbers in the same order.
_FOLD_OF_SUBGROUP = """real NAME(real part) {
    for (int width = LOCAL / 2; width > 0; width /= 2) {
        real other = subgroupShuffleXor(part, uint(width));
        part = JOIN;
    }
    return subgroupShuffle(part, 0u);
}"""
_MATRIX = "layout(buffer_reference, scalar, buffer_reference_align = {}) coherent buffer Matrix {{ real data[]; }};"
_OF_WORKGROUP = [
    "shared real folded[LOCAL];",
    "void meet() { memoryBarrierBuffer(); barrier(); }",
    "void meet_shared() { barrier(); }",
    _FOLD.replace("NAME", "total").replace("JOIN", "folded[lane] + folded[lane + width]"),
    _FOLD.replace("NAME", "largest").replace("JOIN", "max(folded[lane], folded[lane + width])"),
]
_OF_SUBGROUP = [
    "void meet() { subgroupBarrier(); }",
    "void meet_shared() { subgroupBarrier(); }",
    _FOLD_OF_SUBGROUP.replace("NAME", "total").replace("JOIN", "part + other"),
    _FOLD_OF_SUBGROUP.replace("NAME", "largest").replace("JOIN", "max(part, other)"),
]


def is_one_subgroup(profile: DeviceProfile, local: int) -> bool:
    """Whether a workgroup of so many invocations is a subgroup of a CPU driver."""
    known = profile.knows_subgroup_size and profile.subgroup_shuffle
    return profile.kind == "cpu" and known and local == profile.subgroup_size


def _local(profile: DeviceProfile) -> int:
    return max(profile.subgroup_size, MATRIX_WORKGROUP.cpu) if profile.kind == "cpu" else MATRIX_WORKGROUP.gpu


class MatrixRoutine:
    """The state of writing a kernel with a workgroup per matrix, which is a subgroup if the algorithm needs that."""

    def __init__(
        self,
        kernel: Kernel,
        profile: DeviceProfile,
        lifted: bool,
        in_subgroup: bool = False,
        invocations: int | None = None,
    ) -> None:
        (node,) = kernel.graph.outputs
        local = profile.subgroup_size if in_subgroup else invocations or _local(profile)
        self.is_subgroup = in_subgroup or is_one_subgroup(profile, local)
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, local)
        self.node, self.body = node, self.routine.body
        self.operand = node.operands[0]
        self.dtype = node.dtype
        *self.batch, self.rows, self.columns = self.operand.shape
        self.count = prod(self.batch)
        self.routine.open(self.count * local)
        self.declarations: list[str] = []
        self.lanes = local if self.is_subgroup else None  # of subgroups that exchange values
        self.matrix = self.routine.position("matrix", f"i / {local}", self.count)
        self.body.line(f"lane = i % {local};")
        size = self.routine.integer("size", node.type.size // self.count)
        behind = self.routine.body.uses.access("behind")
        first = f"{behind}({self.routine.target}, matrix, {self.dtype.bits // 8}u * uint({size}))"
        self.body.line(f"Matrix x = Matrix({first});")
        self.routine.integer("rows", self.rows)
        self.routine.integer("columns", self.columns)

    def starts(self, *names: str) -> None:
        """Declares where each part of the result begins, under the part's name."""
        parts = parts_of(self.node.op, self.operand.type, self.node.attrs)
        for name in names:
            self.routine.integer(name, parts[name][0])

    def integer(self, name: str, value: int) -> None:
        self.routine.integer(name, value)

    def load(self, target: str, condition: str = "") -> None:
        """Copies every element [r, c] of the matrix to `target` if `condition` holds."""
        with self.body.block("for (int e = lane; e < rows * columns; e += LOCAL)"):
            row = self.routine.position("r", "e / columns", self.rows)
            column = self.routine.position("c", "e % columns", self.columns)
            value = self.at(row, column)
            self.body.line(f"{f'if ({condition}) ' if condition else ''}{target} = {value};")

    def at(self, row: Index, column: Index) -> str:
        """An element of the matrix."""
        batch = unflatten(variable("matrix", self.count), tuple(self.batch))
        return self.routine.read(self.operand, (*batch, row, column))

    def declare(self, text: str) -> None:
        """Adds declarations before the main function: shared memory and functions."""
        self.declarations += text.strip().splitlines()

    def number(self, value: float) -> str:
        """Declares a number of the matrix's dtype."""
        return literal(value, self.dtype)

    def write(self, text: str) -> None:
        """Adds the algorithm, or a part of it."""
        for line in text.strip().splitlines():
            self.body.line(line)

    def close(self) -> Launch:
        local, alone = self.routine.local, self.is_subgroup
        declarations = [f"#define real {type_name(self.dtype, 1)}", f"const int LOCAL = {local};"]
        declarations += [_MATRIX.format(self.dtype.bits // 8), "int lane;"]
        declarations += [*(_OF_SUBGROUP if alone else _OF_WORKGROUP), *self.declarations]
        lines, shuffles = self.body.scopes[0].lines, self.lanes is not None
        text = ShaderText(
            self.body.uses, lines, (local, 1), declarations, subgroup_size=self.lanes, shuffles=shuffles
        )
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(self.count), text=text)
