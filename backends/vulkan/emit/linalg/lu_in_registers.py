"""Gaussian elimination by a GPU's workgroup whose invocations keep rows of a panel (Golub and Van Loan, 3.4.1).

Rows come and go through shared memory, some columns at a time, so that neighbours among invocations read and write
neighbours in memory. While they are eliminated they stay where they are: each has the number that exchanges give it,
its place, and is stored there in the end. The pivot's row goes through shared memory, from where it is stored at once.
So a row that has been a pivot's may go on like the others: what it computes is not stored.

An invocation's registers turn: the column to be eliminated is always the first one, every other element moves one
register forward as it is computed, and the factor becomes the last one. So a loop's text serves several columns, and
as few as these are computed in vain.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.passes.kernels.index import constant
from lavax.passes.kernels.kernel import Kernel


@dataclass(frozen=True)
class Panels:
    """What a workgroup keeps. Registers are 32 bits wide."""

    registers: int = 1 << 15  # of all invocations, for elements
    registers_each: int = 64
    least_invocations: int = 64
    least_columns: int = 4  # of panels that are worth their products
    columns_in_turn: int = 8  # eliminated by one loop
    least_staged: int = 128  # rows of panels that pass through shared memory
    staged: tuple[int, ...] = (32, 16, 8, 4)  # columns that do so at once, if they fit
    other_bytes: int = 8192  # of shared memory, for what elimination exchanges


PANELS = Panels()

# The first of equal pivots is taken. NaN is never greater.
_GREATEST_OF_LANES = """
    for (int width = LANES / 2; width > 0; width /= 2) {
        real other = subgroupShuffleXor(magnitude, uint(width));
        int there = subgroupShuffleXor(place, uint(width));
        bool is_there = other > magnitude || other == magnitude && there < place;
        magnitude = is_there ? other : magnitude;
        place = is_there ? there : place;
    }
"""
_PIVOT_BY_SUBGROUPS = """
shared real subgroup_highest[LOCAL / LANES];
shared int subgroup_place[LOCAL / LANES];
int pivot_of(real magnitude, int place) {
    GREATEST
    if (gl_SubgroupInvocationID == 0u) {
        subgroup_highest[gl_SubgroupID] = magnitude;
        subgroup_place[gl_SubgroupID] = place;
    }
    barrier();
    int n = min(int(gl_SubgroupInvocationID), LOCAL / LANES - 1);
    magnitude = subgroup_highest[n];
    place = subgroup_place[n];
    GREATEST
    return place;
}
"""
_PIVOT_BY_FOLDS = """
int pivot_of(real magnitude, int place) {
    real best = largest(magnitude);
    return int(-largest(magnitude == best ? -real(place) : -1e9));
}
"""
_COLUMNS = """
for (int k = FIRST; k < END; ++k) {
    real highest = -1.0;
    int pivot = rows;
    FIND
    pivot = pivot_of(highest, pivot);
    pivot = pivot < rows ? pivot : k;
    sign = pivot == k ? sign : -sign;
    PUBLISH
    barrier();
    if (lane < columns - k) x.data[k * columns + k + lane] = pivots[lane / 4][lane % 4];
    real4 ROW;
    real divisor = row0.x;
    ELIMINATE
}
"""
_FIND = """
{
    real magnitude = abs(a#_0);
    bool is_open = place# >= k && place# < rows;
    if (is_open && (magnitude > highest || magnitude == highest && place# < pivot)) {
        highest = magnitude;
        pivot = place#;
    }
}
"""
_PUBLISH = """
if (place# == pivot) {
    STORE
    place# = k;
} else if (place# == k) {
    place# = pivot;
}
"""


def _invocations(rows: int, profile: DeviceProfile) -> int:
    """A power of two, so that panels of about as many rows are eliminated by as many."""
    enough = max(PANELS.least_invocations, 1 << (rows - 1).bit_length())
    return min(enough, 1 << (profile.max_workgroup_invocations.bit_length() - 1))


def most_columns(rows: int, dtype: DType, profile: DeviceProfile) -> int:
    """The most columns of a panel of so many rows that a workgroup keeps; 0 if there are too many rows."""
    local = _invocations(rows, profile)
    each = min(PANELS.registers_each, PANELS.registers // local) * 32 // dtype.bits
    columns = each // -(-rows // local)
    return columns if columns >= PANELS.least_columns else 0


def suits_registers(kernel: Kernel, profile: DeviceProfile) -> bool:
    """Whether a workgroup keeps the matrix."""
    matrix = kernel.graph.outputs[0].operands[0]
    rows, columns = matrix.shape[-2:]
    return profile.kind == "gpu" and columns <= min(rows, most_columns(rows, matrix.dtype, profile))


def eliminate_in_registers(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of lu."""
    rows, columns = kernel.graph.outputs[0].operands[0].shape[-2:]
    local = _invocations(rows, profile)
    routine = MatrixRoutine(kernel, profile, lifted, invocations=local)
    routine.starts("permutation", "parity")
    _declare(routine, columns, profile)
    own = range(-(-rows // local))
    staged = _staged(rows, columns, routine.dtype, profile)
    if staged:
        routine.declare(f"const int STAGED = {staged + 1};\nshared real stage[{rows * (staged + 1)}];")
    _load(routine, own, local, staged)
    routine.write("real sign = 1.0;")
    for first in range(0, columns, PANELS.columns_in_turn):
        routine.write(_eliminated(first, columns, own))
    _store(routine, own, local, staged)
    return routine.close()


def _staged(rows: int, columns: int, dtype: DType, profile: DeviceProfile) -> int:
    """How many columns of all rows pass through shared memory at once; 0 if none do, or there is no room for a few."""
    if rows < PANELS.least_staged:
        return 0
    room = (profile.shared_memory_bytes - PANELS.other_bytes) * 8 // dtype.bits
    fitting = (count for count in PANELS.staged if rows * (count + 1) <= room and count < 2 * columns)
    return next(fitting, 0)


def _declare(routine: MatrixRoutine, columns: int, profile: DeviceProfile) -> None:
    lanes, local = profile.subgroup_size, routine.routine.local
    routine.declare(f"#define real4 {type_name(routine.dtype, 4)}")
    routine.declare(f"shared real4 pivots[{-(-columns // 4)}];")
    # Devices limit the subgroups of a workgroup whose subgroups have a known size (maxComputeWorkgroupSubgroups).
    if profile.subgroup_shuffle and profile.knows_subgroup_size and local % lanes == 0 and local <= lanes**2:
        routine.lanes = lanes
        text = _PIVOT_BY_SUBGROUPS.replace("GREATEST", _GREATEST_OF_LANES.strip())
        routine.declare(text.replace("LANES", str(lanes)))
    else:
        routine.declare(_PIVOT_BY_FOLDS)


def _load(routine: MatrixRoutine, own: range, local: int, staged: int) -> None:
    for number in own:
        routine.write(f"int place{number} = lane + {number * local};")
        row = routine.routine.position(f"r{number}", f"min(place{number}, rows - 1)", routine.rows)
        if not staged:
            for column in range(routine.columns):
                routine.write(f"real a{number}_{column} = {routine.at(row, constant(column))};")
    for first in range(0, routine.columns, staged) if staged else ():
        columns = range(first, min(first + staged, routine.columns))
        _through_stage(routine, columns, local, "stage[at_row * STAGED + at_column] = {element};")
        for number in own:
            for column in columns:
                routine.write(f"real a{number}_{column} = stage[r{number} * STAGED + {column - first}];")


def _through_stage(routine: MatrixRoutine, columns: range, local: int, move: str) -> None:
    """Moves these columns of all rows between the stage and memory, between two barriers."""
    body, width = routine.body, len(columns)
    body.line("barrier();")
    with body.block(f"{body.uses.unroll}for (int turn = 0; turn < {-(-routine.rows * width // local)}; ++turn)"):
        body.line(f"int place = min(turn * {local} + lane, rows * {width} - 1);")
        row = routine.routine.position("at_row", f"place / {width}", routine.rows)
        body.line(f"int at_column = place % {width};")
        column = routine.routine.position("column", f"{columns[0]} + at_column", routine.columns)
        body.line(move.replace("{element}", routine.at(row, column)) if "{element}" in move else move)
    body.line("barrier();")


def _eliminated(first: int, columns: int, own: range) -> str:
    """The next few columns of those from `first` on, which are in the first registers."""
    width = columns - first
    in_turn = min(PANELS.columns_in_turn, width)
    eliminate = []
    for number in own:
        name = f"a{number}"
        eliminate.append(f"real factor{number} = divisor != 0.0 ? {name}_0 / divisor : {name}_0;")
        for column in range(1, width):
            rest = f"{name}_{column} - factor{number} * row{column // 4}.{COMPONENTS[column % 4]}"
            if column > width - in_turn:  # in the loop's last turns, factors
                rest = f"{column} < columns - k ? {rest} : {name}_{column}"
            eliminate.append(f"{name}_{column - 1} = {rest};")
        eliminate.append(f"{name}_{width - 1} = factor{number};")
    publish = [
        _PUBLISH.strip().replace("STORE", "\n    ".join(_fours(width))).replace("#", str(number)) for number in own
    ]
    parts = {
        "FIND": "\n".join(_FIND.strip().replace("#", str(number)) for number in own),
        "PUBLISH": "\n".join(publish),
        "ROW": ", ".join(f"row{four} = pivots[{four}]" for four in range(-(-width // 4))),
        "ELIMINATE": "\n".join(eliminate),
        "FIRST": str(first),
        "END": str(first + in_turn),
    }
    text = _COLUMNS
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def _fours(width: int) -> list[str]:
    """The statements that give the pivot's row to all, four elements at once."""
    texts = [f"a#_{column}" if column < width else "0.0" for column in range(-(-width // 4) * 4)]
    fours = [", ".join(texts[first : first + 4]) for first in range(0, len(texts), 4)]
    return [f"pivots[{number}] = real4({four});" for number, four in enumerate(fours)]


def _store(routine: MatrixRoutine, own: range, local: int, staged: int) -> None:
    """The factors below the diagonal, where the turns have left them, and the permutation."""
    for number in own:
        with routine.body.block(f"if (place{number} < rows)"):
            routine.write(f"x.data[permutation + place{number}] = real(lane + {number * local});")
            if not staged:
                for column in range(routine.columns):
                    store = f"x.data[place{number} * columns + {column}] = a{number}_{_register(routine, column)};"
                    routine.write(f"if ({column} < place{number}) {store}")
    for first in range(0, routine.columns, staged) if staged else ():
        columns = range(first, min(first + staged, routine.columns))
        for number in own:
            with routine.body.block(f"if (place{number} < rows)"):
                for column in columns:
                    kept = f"a{number}_{_register(routine, column)}"
                    routine.write(f"stage[place{number} * STAGED + {column - first}] = {kept};")
        move = "if (column < at_row) x.data[at_row * columns + column] = stage[at_row * STAGED + at_column];"
        _through_stage(routine, columns, local, move)
    routine.write("if (lane == 0) x.data[parity] = sign;")


def _register(routine: MatrixRoutine, column: int) -> int:
    """Where a column's factor is in the end."""
    first = column - column % PANELS.columns_in_turn
    return max(routine.columns - first - PANELS.columns_in_turn, 0) + column - first
