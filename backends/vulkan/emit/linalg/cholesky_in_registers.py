"""Cholesky's factor by a GPU's workgroup whose invocations keep the matrix (Golub and Van Loan, 4.2.5).

Invocations stand in a square, and each has the elements that lie where it stands in every square block of the matrix.
A column goes through shared memory once it has had all columns before it subtracted, with one barrier: there are two
places for columns, which take turns.
"""

from __future__ import annotations

from math import nan

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

_SHORT_SIDE, _LONG_SIDE = 8, 16  # of the square of invocations
_SHORT_ROWS = 32  # for which the short side is enough

# Every element is less its row's times its column's over the pivot, which is what the roots would come to.
_COLUMN = """
for (int k = FIRST; k < min(FIRST + SIDE, rows); ++k) {
    int held = k % 2 * EXTENT;
    if (across == k - FIRST) {
        PUBLISH
    }
    meet_shared();
    real pivot = column[held + k];
    real root = sqrt(pivot);
    positive = positive && pivot > 0.0;
    TAKE
    SUBTRACT
    if (across == k - FIRST) {
        DIVIDE
        if (down == across) aBLOCK_BLOCK = root;
    }
}
"""


def _side(rows: int, profile: DeviceProfile) -> int:
    is_short = rows <= _SHORT_ROWS or profile.max_workgroup_invocations < _LONG_SIDE**2
    return _SHORT_SIDE if is_short else _LONG_SIDE


def factor_in_registers(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of cholesky."""
    rows = kernel.graph.outputs[0].shape[-1]
    side = _side(rows, profile)
    routine = MatrixRoutine(kernel, profile, lifted=True, invocations=side**2)
    blocks = -(-rows // side)
    routine.declare(f"shared real column[{2 * blocks * side}];")
    _load(routine, blocks, side)
    routine.write("bool positive = true;")
    for block in range(blocks):
        routine.write(_factored(block, blocks, side))
    _store(routine, blocks)
    return routine.close()


def _load(routine: MatrixRoutine, blocks: int, side: int) -> None:
    """Declares what an invocation keeps: nothing of blocks above the diagonal."""
    routine.write(f"int down = lane / {side}, across = lane % {side};")
    for block in range(blocks):
        first = block * side
        routine.write(f"int row{block} = {first} + down, column{block} = {first} + across;")
    rows = [routine.routine.position(f"r{i}", f"min(row{i}, rows - 1)", routine.rows) for i in range(blocks)]
    columns = [routine.routine.position(f"c{j}", f"min(column{j}, rows - 1)", routine.rows) for j in range(blocks)]
    for i in range(blocks):
        for j in range(i):
            routine.write(f"real a{i}_{j} = {routine.at(rows[i], columns[j])};")
        # What lies above the diagonal is not read.
        diagonal = routine.routine.position(f"d{i}", f"min(c{i}, r{i})", routine.rows)
        routine.write(f"real a{i}_{i} = {routine.at(rows[i], diagonal)};")


def _factored(block: int, blocks: int, side: int) -> str:
    """The columns of one block, and what they take from those behind them."""
    behind = range(block, blocks)
    subtract = [f"a{i}_{j} -= row_{i} * factor_{j};" for j in behind[1:] for i in range(j, blocks)]
    subtract += [f"a{i}_{block} -= column{block} > k ? row_{i} * factor_{block} : 0.0;" for i in behind]
    parts = {
        "PUBLISH": "\n".join(f"column[held + row{i}] = a{i}_{block};" for i in behind),
        "TAKE": "\n".join(
            f"real row_{i} = column[held + row{i}], factor_{i} = column[held + column{i}] / pivot;" for i in behind
        ),
        "SUBTRACT": "\n".join(subtract),
        "DIVIDE": "\n".join(f"a{i}_{block} = row_{i} / root;" for i in behind),
        "FIRST": str(block * side),
        "SIDE": str(side),
        "EXTENT": str(blocks * side),
        "BLOCK": str(block),
    }
    text = _COLUMN
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


def _store(routine: MatrixRoutine, blocks: int) -> None:
    failed = routine.number(nan)
    for i in range(blocks):
        for j in range(blocks):
            kept = f"column{j} > row{i} ? 0.0 : positive ? a{i}_{j} : {failed}" if j <= i else "0.0"
            routine.write(f"if (row{i} < rows && column{j} < rows) x.data[row{i} * rows + column{j}] = {kept};")
