"""Triangular systems by a GPU's workgroups, which keep the triangle and some right sides in shared memory.

Unknowns are found in blocks. Several lanes have a right side, and each subtracts from some of a block's unknowns what
is known of the others; then one of them finds the block's unknowns one after the other.
"""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.passes.kernels.index import flatten, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class SharedSolves:
    """How a workgroup shares the work."""

    sides: int = 32  # of a workgroup, neighbours in memory
    lanes: int = 4  # of a side
    block: int = 8  # unknowns, which the lanes share
    most_rows: int = 64
    least_rows: int = 17  # fewer are as well solved by an invocation alone, where there are many sides


SOLVES = SharedSolves()

_SOLVE = """
for (int first = 0; first < steps; first += BLOCK) {
    barrier();
    real SUMS;
    for (int j = 0; j < first; ++j) {
        real known = unknowns[j * SIDES + side];
        SUBTRACT
    }
    KEEP
    barrier();
    if (quarter == 0) {
        real FOUND;
        SUBSTITUTE
        KNOWN
    }
}
barrier();
"""


def _bytes(rows: int, dtype: DType) -> int:
    padded = -(-rows // SOLVES.block) * SOLVES.block
    return padded * (padded + 1 + SOLVES.sides) * dtype.bits // 8


def most_solved(dtype: DType, profile: DeviceProfile) -> int:
    """The most rows of a triangle that a workgroup keeps with its sides."""
    rows = SOLVES.most_rows
    while _bytes(rows, dtype) > profile.shared_memory_bytes:
        rows //= 2
    return rows


def suits_shared_memory(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether a workgroup keeps the triangle, and that pays."""
    if profile.kind != "gpu":
        return False
    right = kernel.graph.outputs[0].operands[1]
    rows, are_many = right.shape[-2], right.type.size // right.shape[-2] >= SOLVES.sides * SOLVES.lanes
    return (SOLVES.least_rows if are_many else 1) <= rows <= most_solved(right.dtype, profile)


def solve_in_shared_memory(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of triangular_solve."""
    routine = open_routine(kernel, profile, True, SOLVES.sides * SOLVES.lanes)
    right = routine.operands[1]
    *batch, rows, sides = right.shape
    tiles = -(-sides // SOLVES.sides)
    groups = prod(batch) * tiles
    padded = -(-rows // SOLVES.block) * SOLVES.block
    routine.open(groups * routine.local)
    for name, value in (("steps", rows), ("sides", sides), ("tiles", tiles)):
        routine.integer(name, value)
    place = unflatten(routine.position("matrix", f"i / {routine.local} / tiles", prod(batch)), tuple(batch))
    body = routine.body
    body.line(f"int lane = i % {routine.local}, tile = i / {routine.local} % tiles;")
    _load_triangle(routine, place)
    body.line(f"int side = lane % {SOLVES.sides}, quarter = lane / {SOLVES.sides};")
    body.line(f"bool is_side = tile * {SOLVES.sides} + side < sides;")
    column = routine.position("own", f"min(tile * {SOLVES.sides} + side, sides - 1)", sides)
    with body.block(f"for (int k = quarter; k < steps; k += {SOLVES.lanes})"):
        row = routine.position("r", _row(routine, "k"), rows)
        body.line(f"unknowns[k * {SOLVES.sides} + side] = {routine.read(right, (*place, row, column))};")
    for line in _solved(routine.node.attrs["unit_diagonal"]).splitlines():
        body.line(line)
    with body.block(f"for (int k = quarter; k < steps; k += {SOLVES.lanes})"):
        row = routine.position("r", _row(routine, "k"), rows)
        target = routine.element(flatten((*place, row, column), right.shape))
        body.line(f"if (is_side) {target} = unknowns[k * {SOLVES.sides} + side];")
    declarations = [
        f"#define real {type_name(right.dtype, 1)}",
        f"const int STRIDE = {padded + 1};",
        f"shared real triangle[{padded * (padded + 1)}];",
        f"shared real unknowns[{padded * SOLVES.sides}];",
    ]
    text = ShaderText(body.uses, body.scopes[0].lines, (routine.local, 1), declarations)
    return Launch(assemble(text), tuple(body.parameters.words), grid(groups), text=text)


def _row(routine: RoutineShader, step: str) -> str:
    """The row of that step's unknown."""
    attrs = routine.node.attrs
    return step if attrs["lower"] != attrs["transposed"] else f"steps - 1 - {step}"


def _load_triangle(routine: RoutineShader, place: Coordinates) -> None:
    """Row k of the triangle in shared memory has what unknown k, in the order of steps, takes of those before it."""
    matrix, rows = routine.operands[0], routine.operands[0].shape[-1]
    body = routine.body
    with body.block(f"for (int e = lane; e < steps * steps; e += {routine.local})"):
        row = routine.position("r", "e / steps", rows)
        column = routine.position("c", "e % steps", rows)
        later, earlier = ("c", "r") if routine.node.attrs["transposed"] else ("r", "c")
        body.line(f"int later = {_row(routine, later)}, earlier = {_row(routine, earlier)};")
        value = routine.read(matrix, (*place, row, column))
        body.line(f"if (earlier <= later) triangle[later * STRIDE + earlier] = {value};")


def _solved(unit_diagonal: bool) -> str:
    shared = range(SOLVES.block // SOLVES.lanes)
    block = range(SOLVES.block)
    substitute = []
    for k in block:
        if not unit_diagonal:
            substitute.append(f"x{k} /= triangle[(first + {k}) * STRIDE + first + {k}];")
        substitute += [f"x{r} -= triangle[(first + {r}) * STRIDE + first + {k}] * x{k};" for r in block[k + 1 :]]
    unknown = [f"unknowns[(first + quarter + {SOLVES.lanes * n}) * SIDES + side]" for n in shared]
    parts = {
        "SUMS": ", ".join(f"sum{n} = {unknown[n]}" for n in shared),
        "SUBTRACT": "\n".join(
            f"sum{n} -= triangle[(first + quarter + {SOLVES.lanes * n}) * STRIDE + j] * known;" for n in shared
        ),
        "KEEP": "\n".join(f"{unknown[n]} = sum{n};" for n in shared),
        "FOUND": ", ".join(f"x{k} = unknowns[(first + {k}) * SIDES + side]" for k in block),
        "SUBSTITUTE": "\n".join(substitute),
        "KNOWN": "\n".join(f"unknowns[(first + {k}) * SIDES + side] = x{k};" for k in block),
        "BLOCK": str(SOLVES.block),
        "SIDES": str(SOLVES.sides),
    }
    text = _SOLVE.strip()
    for name, part in parts.items():
        text = text.replace(name, part)
    return text
