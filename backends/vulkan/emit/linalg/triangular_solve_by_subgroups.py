"""Small triangular systems of few right sides by a GPU's subgroups, each of which has a system: a row to a lane.

The triangle goes through shared memory, because lanes that are neighbours read neighbours along rows.
"""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, flatten, unflatten
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class SolvesBySubgroups:
    """Which systems subgroups solve, and how many subgroups a workgroup has."""

    sides: tuple[int, ...] = (1, 2, 4)
    subgroups: int = 4
    written_rows: int = 4  # rows are rounded up to a multiple of these, so that systems share shaders


BY_SUBGROUPS = SolvesBySubgroups()


def suits_subgroups(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether a subgroup has a lane for each row, and right sides are few."""
    right = kernel.graph.outputs[0].operands[1].type
    lanes = profile.subgroup_size
    has_lanes = profile.kind == "gpu" and profile.subgroup_shuffle and profile.knows_subgroup_size
    is_small = right.shape[-2] <= lanes and right.shape[-1] <= BY_SUBGROUPS.sides[-1]
    memory = BY_SUBGROUPS.subgroups * lanes * (lanes + 1) * right.dtype.bits // 8
    invocations = BY_SUBGROUPS.subgroups * lanes
    has_room = memory <= profile.shared_memory_bytes and invocations <= profile.max_workgroup_invocations
    return has_lanes and is_small and has_room


def solve_by_subgroups(kernel: Kernel, profile: DeviceProfile) -> Launch:
    """The shader of triangular_solve."""
    lanes, subgroups = profile.subgroup_size, BY_SUBGROUPS.subgroups
    routine = open_routine(kernel, profile, True, subgroups * lanes)
    body, (matrix, right) = routine.body, routine.operands
    *batch, rows, sides = right.shape
    width = next(width for width in BY_SUBGROUPS.sides if width >= sides)
    written = min(-(-rows // BY_SUBGROUPS.written_rows) * BY_SUBGROUPS.written_rows, lanes)
    groups = -(-prod(batch) // subgroups)
    unit = routine.node.attrs["unit_diagonal"]
    routine.open(groups * routine.local)
    for name, value in (("steps", rows), ("sides", sides), ("systems", prod(batch))):
        routine.integer(name, value)
    body.line("int lane = int(gl_SubgroupInvocationID), subgroup = int(gl_SubgroupID);")
    body.line(f"int number = i / {routine.local} * {subgroups} + subgroup, at = subgroup * TILE;")
    place = unflatten(routine.position("system", "min(number, systems - 1)", prod(batch)), tuple(batch))
    with body.block("for (int e = lane; e < steps * steps; e += LANES)"):
        row = routine.position("r", "e / steps", rows)
        column = routine.position("c", "e % steps", rows)
        later, earlier = ("c", "r") if routine.node.attrs["transposed"] else ("r", "c")
        body.line(f"int later = {_row(routine, later)}, earlier = {_row(routine, earlier)};")
        factor = routine.read(matrix, (*place, row, column))
        body.line(f"if (earlier <= later) triangle[at + later * STRIDE + earlier] = {factor};")
    row = routine.position("own", _row(routine, "min(lane, steps - 1)"), rows)
    columns = [_column(routine, side, sides) for side in range(width)]
    values = ", ".join(routine.read(right, (*place, row, column)) for column in columns)
    body.line(f"reals sum = reals({values});")
    body.line("subgroupBarrier();")
    body.line("at += lane * STRIDE;")
    for k in range(written):
        body.line(f"real t{k} = triangle[at + {k}];")
    if not unit:
        body.line("real inverse = 1.0 / triangle[at + lane];")
    for line in substitution(written, unit):
        body.line(line)
    for side, column in enumerate(columns[:sides]):
        element = routine.element(flatten((*place, row, column), right.shape))
        body.line(f"if (number < systems && lane < steps) {element} = {side_of('found', width, str(side))};")
    real = type_name(right.dtype, 1)
    declarations = [
        f"#define real {real}",
        f"#define reals {reals_of(real, width)}",
        f"const int LANES = {lanes}, STRIDE = {lanes + 1}, TILE = {lanes * (lanes + 1)};",
        f"shared real triangle[{subgroups * lanes * (lanes + 1)}];",
    ]
    text = ShaderText(
        body.uses, body.scopes[0].lines, (routine.local, 1), declarations, subgroup_size=lanes, shuffles=True
    )
    return Launch(assemble(text), tuple(body.parameters.words), grid(groups), text=text)


def _row(routine: RoutineShader, step: str) -> str:
    """The row of that step's unknown."""
    attrs = routine.node.attrs
    return step if attrs["lower"] != attrs["transposed"] else f"steps - 1 - {step}"


def _column(routine: RoutineShader, side: int, sides: int) -> Index:
    return routine.position(f"side{side}", f"min({side}, sides - 1)", sides)


def substitution(rows: int, unit_diagonal: bool) -> list[str]:
    """The statements that find the unknowns of so many rows: `reals found`, a lane's own, of `reals sum` and `lane`.

    `t0`, `t1`, … are the lane's elements of the triangle before the diagonal, and `inverse` is that of the diagonal's.
    Others may be anything: what later unknowns, which may be infinite, make of a lane's sum comes too late.
    """
    unknown = "sum" if unit_diagonal else "sum * inverse"
    lines = ["reals found = sum, known_to_all;"]
    for k in range(rows):
        lines.append(f"known_to_all = subgroupShuffle({unknown}, {k}u);")
        lines.append(f"found = lane == {k} ? known_to_all : found;")
        if k + 1 < rows:
            lines.append(f"sum -= t{k} * known_to_all;")
    return lines


def reals_of(real: str, sides: int) -> str:
    """The type of so many numbers, one for each right side: 1, 2 or 4."""
    return real if sides == 1 else {"float": f"vec{sides}", "double": f"dvec{sides}"}[real]


def side_of(text: str, sides: int, side: str) -> str:
    """One side's number."""
    return f"{text}[{side}]" if sides > 1 else text
