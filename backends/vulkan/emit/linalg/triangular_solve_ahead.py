"""Triangular systems by a GPU's workgroups, each of which finds all unknowns of a few right sides.

Unknowns are found in blocks of as many as a subgroup has lanes. One subgroup, the solver, substitutes within a block,
one row to a lane. The others prepare the next block meanwhile: they subtract what is known from its right sides, and
put into shared memory what the solver needs of the triangle. So a block takes one barrier, and nobody but the solver
waits for the unknowns before.
"""

from __future__ import annotations

from math import prod

from lavax.backends.vulkan.emit.linalg.triangular_solve_by_subgroups import reals_of, side_of, substitution
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType, TensorType
from lavax.passes.kernels.index import Index, flatten, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


@dataclass(frozen=True)
class SolvesAhead:
    """How a workgroup shares the work."""

    most_rows: int = 512
    least_rows: int = 65
    sides: tuple[int, ...] = (1, 2, 4)  # of a workgroup; more than one only if all processors have some
    groups: int = 2  # workgroups of a processor, at most; more leave nothing idle that products would use
    workers: int = 16  # subgroups that prepare
    at_once: int = 4  # elements of a row that a lane loads before it needs the first


AHEAD = SolvesAhead()

def _workers(profile: DeviceProfile) -> int:
    """The subgroups that prepare: as many have as many rows of a block each."""
    lanes = profile.subgroup_size
    most = min(AHEAD.workers, lanes // 2, profile.max_workgroup_invocations // lanes - 1)
    return 1 << (most.bit_length() - 1) if most > 0 else 0


def _bytes(sides: int, transposed: bool, dtype: DType, profile: DeviceProfile) -> int:
    """Of shared memory: unknowns, two tiles of the triangle, two columns of divisors, and sums."""
    lanes = profile.subgroup_size
    known = AHEAD.most_rows * sides
    tiles = 4 * lanes * (lanes + 1) + 2 * lanes
    sums = 2 * lanes * sides * (_workers(profile) if transposed else 1)
    return (known + tiles + sums) * dtype.bits // 8


def _sides(right: TensorType, transposed: bool, profile: DeviceProfile) -> int:
    """The right sides of a workgroup, which take it longer than one; 0 if it cannot solve ahead."""
    has_lanes = profile.kind == "gpu" and profile.subgroup_shuffle and profile.knows_subgroup_size
    if not has_lanes or not _workers(profile):
        return 0
    memory = profile.shared_memory_bytes
    fitting = [sides for sides in AHEAD.sides if _bytes(sides, transposed, right.dtype, profile) <= memory]
    few = (sides for sides in fitting if sides >= right.shape[-1] or _groups(right, sides) <= profile.processors)
    return next(few, max(fitting, default=0))


def _groups(right: TensorType, sides: int) -> int:
    return prod(right.shape[:-2]) * -(-right.shape[-1] // sides)


def most_solved_ahead(right: TensorType, profile: DeviceProfile) -> int:
    """The most rows of a triangle that a workgroup solves ahead for such right sides; 0 if it had better not."""
    sides = _sides(right, True, profile)
    return AHEAD.most_rows if sides and _groups(right, sides) <= AHEAD.groups * profile.processors else 0


def suits_solving_ahead(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether workgroups solve ahead, and that pays."""
    right = kernel.graph.outputs[0].operands[1].type
    return AHEAD.least_rows <= right.shape[-2] <= most_solved_ahead(right, profile)


class AheadEmitter:
    """The state of writing one such solve. Steps count unknowns in the order in which they are found."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile) -> None:
        (node,) = kernel.graph.outputs
        self.transposed, self.unit = node.attrs["transposed"], node.attrs["unit_diagonal"]
        self.forwards = node.attrs["lower"] != node.attrs["transposed"]
        self.lanes, self.workers = profile.subgroup_size, _workers(profile)
        self.width = _sides(node.operands[1].type, self.transposed, profile)
        self.routine: RoutineShader = open_routine(kernel, profile, True, self.lanes * (self.workers + 1))
        self.body = self.routine.body
        self.matrix, self.right = self.routine.operands
        self.steps = self.right.shape[-2]
        self.batch: Coordinates

    def emit(self) -> Launch:
        routine, body, local = self.routine, self.body, self.routine.local
        *batch, rows, sides = self.right.shape
        tiles = -(-sides // self.width)
        groups = prod(batch) * tiles
        routine.open(groups * local)
        for name, value in (("steps", rows), ("sides", sides), ("tiles", tiles)):
            routine.integer(name, value)
        self.batch = unflatten(routine.position("matrix", f"i / {local} / tiles", prod(batch)), tuple(batch))
        body.line(f"int first_side = i / {local} % tiles * {self.width};")
        body.line("int worker = int(gl_SubgroupID) - 1, lane = int(gl_SubgroupInvocationID);")
        body.line(f"int blocks = (steps + {self.lanes - 1}) / {self.lanes};")
        with body.block("for (int stage = 0; stage <= blocks; ++stage)"):
            with body.block("if (worker >= 0 && stage < blocks)"):
                self._prepare_across() if self.transposed else self._prepare()
            with body.block("if (worker < 0 && stage > 0)"):
                self._solve()
            body.line("barrier();")
        with body.block(f"for (int e = i % {local}; e < steps * {self.width}; e += {local})"):
            body.line(f"int side = e % {self.width};")
            row = self._row("r", f"e / {self.width}")
            column = routine.position("own", "min(first_side + side, sides - 1)", sides)
            element = routine.element(flatten((*self.batch, row, column), self.right.shape))
            found = side_of(f"known[e / {self.width}]", self.width, "side")
            body.line(f"if (first_side + side < sides) {element} = {found};")
        text = ShaderText(
            body.uses, body.scopes[0].lines, (local, 1), self._declarations(), subgroup_size=self.lanes, shuffles=True
        )
        return Launch(assemble(text), tuple(body.parameters.words), grid(groups), text=text)

    def _declarations(self) -> list[str]:
        real, lanes = type_name(self.right.dtype, 1), self.lanes
        return [
            f"#define real {real}",
            f"#define reals {reals_of(real, self.width)}",
            f"const int LANES = {lanes}, STRIDE = {lanes + 1}, TILE = {lanes * (lanes + 1)};",
            f"shared reals known[{AHEAD.most_rows}];",
            "// Each has two places, which blocks take in turn.",
            f"shared reals sums[{2 * lanes * (self.workers if self.transposed else 1)}];",
            f"shared real before[{2 * lanes * (lanes + 1)}];",
            f"shared real own[{2 * lanes * (lanes + 1)}];",
            *([] if self.unit else [f"shared real inverses[{2 * lanes}];"]),
        ]

    def _row(self, name: str, step: str) -> Index:
        """The row of that step's unknown."""
        return self.routine.position(name, step if self.forwards else f"steps - 1 - ({step})", self.steps)

    def _factor(self, row: Index, column: Index) -> str:
        """What the unknown of one row takes of another's."""
        place = (column, row) if self.transposed else (row, column)
        return self.routine.read(self.matrix, (*self.batch, *place))

    def _read_sides(self, target: str, row: Index) -> None:
        values = []
        for side in range(self.width):
            text = f"min(first_side + {side}, sides - 1)"
            column = self.routine.position(f"side{side}", text, self.right.shape[-1])
            values.append(self.routine.read(self.right, (*self.batch, row, column)))
        self.body.line(f"{target} = reals({', '.join(values)});")

    def _keep(self, row: str, column: str) -> None:
        """Puts into shared memory what was read at a row and a column of a block."""
        line = self.body.line
        line(f"before[stage % 2 * TILE + {row} * STRIDE + {column}] = before_read[n];")
        line(f"own[stage % 2 * TILE + {row} * STRIDE + {column}] = {column} < {row} ? own_read[n] : 0.0;")
        if not self.unit:
            line(f"if ({column} == {row}) inverses[stage % 2 * LANES + {row}] = 1.0 / own_read[n];")

    def _prepare(self) -> None:
        """Lanes have the columns of some rows."""
        line, block = self.body.line, self.body.block
        each, loads = self.lanes // self.workers, AHEAD.at_once
        line("int first = stage * LANES, count = max(stage - 1, 0);")
        line(f"real own_read[{each}], before_read[{each}];")
        line(f"reals sum[{each}];")
        own = self._row("own_column", "min(first + lane, steps - 1)")
        before = self._row("before_column", "max(first - LANES, 0) + lane")
        with block(f"for (int n = 0; n < {each}; ++n)"):
            row = self._row("r", f"min(first + worker + n * {self.workers}, steps - 1)")
            line(f"own_read[n] = {self._factor(row, own)};")
            line(f"before_read[n] = {self._factor(row, before)};")
            line("sum[n] = reals(0.0);")
            with block("if (lane == 0)"):
                self._read_sides("sum[n]", row)
        with block(f"for (int c = 0; c < count; c += {loads})"):
            line(f"real t[{each * loads}];")
            line(f"int at[{loads}];")
            with block(f"for (int u = 0; u < {loads}; ++u)"):
                line("at[u] = min(c + u, count - 1) * LANES + lane;")
                column = self._row("column", "at[u]")
                with block(f"for (int n = 0; n < {each}; ++n)"):
                    row = self._row("r", f"min(first + worker + n * {self.workers}, steps - 1)")
                    line(f"t[u * {each} + n] = {self._factor(row, column)};")
            with block(f"for (int u = 0; u < {loads}; ++u)"):
                line("reals x = known[at[u]];")
                with block(f"for (int n = 0; n < {each}; ++n)"):
                    line(f"sum[n] -= c + u < count ? t[u * {each} + n] * x : reals(0.0);")
        with block(f"for (int n = 0; n < {each}; ++n)"):
            line(f"int row = worker + n * {self.workers};")
            self._keep("row", "lane")
            with block("for (int width = LANES / 2; width > 0; width /= 2)"):
                line("sum[n] += subgroupShuffleXor(sum[n], uint(width));")
            line("if (lane == 0) sums[stage % 2 * LANES + row] = sum[n];")

    def _prepare_across(self) -> None:
        """Lanes have the rows of some columns, which are neighbours in memory."""
        line, block, workers = self.body.line, self.body.block, self.workers
        each, loads = self.lanes // workers, 2 * AHEAD.at_once
        line("int first = stage * LANES, count = max(first - LANES, 0);")
        line(f"real own_read[{each}], before_read[{each}];")
        row = self._row("r", "min(first + lane, steps - 1)")
        with block(f"for (int n = 0; n < {each}; ++n)"):
            own = self._row("own_column", f"min(first + worker + n * {workers}, steps - 1)")
            before = self._row("before_column", f"max(first - LANES, 0) + worker + n * {workers}")
            line(f"own_read[n] = {self._factor(row, own)};")
            line(f"before_read[n] = {self._factor(row, before)};")
        line("reals sum = reals(0.0);")
        with block("if (worker == 0)"):
            self._read_sides("sum", row)
        with block(f"for (int c = worker; c < count; c += {workers * loads})"):
            line(f"real t[{loads}];")
            with block(f"for (int u = 0; u < {loads}; ++u)"):
                column = self._row("column", f"min(c + u * {workers}, count - 1)")
                line(f"t[u] = {self._factor(row, column)};")
            with block(f"for (int u = 0; u < {loads}; ++u)"):
                line(f"int at = c + u * {workers};")
                line("sum -= at < count ? t[u] * known[min(at, count - 1)] : reals(0.0);")
        with block(f"for (int n = 0; n < {each}; ++n)"):
            line(f"int column = worker + n * {workers};")
            self._keep("lane", "column")
        line(f"sums[(stage % 2 * {workers} + worker) * LANES + lane] = sum;")

    def _solve(self) -> None:
        """The unknowns of the block before this stage's, a row to a lane."""
        line, lanes = self.body.line, range(self.lanes)
        line("int block = stage - 1, turn = block % 2;")
        if self.transposed:
            line(f"reals sum = sums[turn * {self.workers} * LANES + lane];")
            for n in range(1, self.workers):
                line(f"sum += sums[(turn * {self.workers} + {n}) * LANES + lane];")
        else:
            line("reals sum = sums[turn * LANES + lane];")
        line("int at = turn * TILE + lane * STRIDE;")
        for k in lanes:
            line(f"real t{k} = own[at + {k}];")
        with self.body.block("if (block > 0)"):
            line("int first = (block - 1) * LANES;")
            for k in lanes:
                line(f"sum -= before[at + {k}] * known[first + {k}];")
        if not self.unit:
            line("real inverse = inverses[turn * LANES + lane];")
        for statement in substitution(self.lanes, self.unit):
            line(statement)
        line("known[block * LANES + lane] = found;")


def solve_ahead(kernel: Kernel, profile: DeviceProfile) -> Launch:
    """The shader of triangular_solve."""
    return AheadEmitter(kernel, profile).emit()
