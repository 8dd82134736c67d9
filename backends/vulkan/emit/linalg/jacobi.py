"""Jacobi's method for symmetric matrices small enough for shared memory: rotations from both sides, of disjoint pairs
at once (Golub and Van Loan, 8.5).

A round-robin tournament brings every pair together once per sweep; sweeps end when nothing is left to rotate. Each turn
finds all angles first; then it rotates the two-by-two block of every pair of pairs from both sides, in the lower
triangle alone. Loads dominate the cost of a turn, so each element is read and written once, and no index is a quotient,
which drivers for processors compute lane by lane.

A GPU's workgroup takes as many rows as its shared memory holds: larger blocks need fewer rounds. More invocations share
larger matrices alone: small ones would only wait longer at barriers.
"""

from __future__ import annotations

import numpy as np

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MATRICES

# In units in the last place of 1: elements that are zeros beside the matrix, and cosines of angles between two vectors
# whose products the matrix holds.
NEGLIGIBLE_ELEMENT, _NEGLIGIBLE_COSINE = 1 / 12, 1 / 2


@dataclass(frozen=True)
class LargeRotations:
    """A GPU's workgroup for matrices of more rows than MATRICES.eigenvalues, if its shared memory holds them.

    Chosen by `python -m benchmarks operations`; docs/performance/linear_algebra_on_gpus.md, "Rotations".
    """

    rows: int = 64  # at most; an even number
    invocations: int = 512

    def shared_bytes(self, dtype: DType) -> int:
        """Of both matrices, angles, signs and the fold of all invocations, and of ranks."""
        numbers = 2 * self.rows * (self.rows + 1) + 2 * self.rows + self.invocations
        return numbers * dtype.bits // 8 + self.rows * 4


LARGE_ROTATIONS = LargeRotations()

# Rows are one longer than there are columns, so that columns do not lie in one bank of the shared memory.
_SHARED = """
const int SIDE = SIDE_OF_MATRIX, STRIDE = SIDE + 1;
shared real work[SIDE * STRIDE], rotation[SIDE * STRIDE], sines[SIDE / 2], halves[SIDE / 2];
"""
# Who meets in which match of a turn, the lower player first: all but the last player sit in a circle and,
PLAYERS = """
ivec2 players(int match, int turn, int circle) {
    int first = turn + match, second = turn - match;
    first = match == 0 ? circle : (first < circle ? first : first - circle);
    second = second < 0 ? second + circle : second;
    return ivec2(min(first, second), max(first, second));
}
"""
# where the first half of the players meets the second alone, all of it.
_OPPONENTS = """
ivec2 players(int match, int turn, int count) {
    int second = turn + match;
    return ivec2(match, second < count ? second + count : second);
}
"""
_PLACES = """
int place(int r, int c) { return max(r, c) * STRIDE + min(r, c); }
"""
# Half the angle's tangent in place of the cosine, so that rounding errors do not add up.
_TURN = """
void turn_by(real s, real half_tangent, inout real first, inout real second) {
    real before = first;
    first -= s * (second + half_tangent * first);
    second += s * (before - half_tangent * second);
}
"""
# The invocations form a grid: `aside` counts those that share a pair, `down` pairs. If the number of players is odd, an
# extra one has a row of zeros.
_GRID = """
int matches = (columns + 1) / 2, turns = TURNS;
int wide = 1;
while (wide < matches && wide < LOCAL) wide *= 2;
int aside = lane & (wide - 1), down = lane / wide, high = LOCAL / wide;
if (columns % 2 == 1) for (int c = lane; c <= columns; c += LOCAL) work[columns * STRIDE + c] = 0.0;
"""
_ANGLES = """
for (int t = lane; t < matches; t += LOCAL) {
    ivec2 pair = players(t, turn, turns);
    int p = place(pair.x, pair.x), q = place(pair.y, pair.y), pq = place(pair.x, pair.y);
    real of_p = work[p], of_q = work[q], across = work[pq], s = 0.0, half_tangent = 0.0;
    if (abs(across) > NEGLIGIBLE) {
        real tilt = (of_q - of_p) / (2.0 * across);
        real slope = 1.0 / (abs(tilt) + sqrt(1.0 + tilt * tilt));
        slope = tilt < 0.0 ? -slope : slope;
        real c = 1.0 / sqrt(1.0 + slope * slope);
        s = slope * c;
        half_tangent = s / (1.0 + c);
        work[p] = of_p - slope * across;
        work[q] = of_q + slope * across;
        work[pq] = 0.0;
        rotated = 1.0;
    }
    sines[t] = s;
    halves[t] = half_tangent;
}
"""
_BLOCKS = """
for (int u = aside; u < t; u += wide) {
    real other_s = sines[u], other_half = halves[u];
    if (s == 0.0 && other_s == 0.0) continue;
    ivec2 others = players(u, turn, turns);
    int pp = place(pair.x, others.x), pq = place(pair.x, others.y);
    int qp = place(pair.y, others.x), qq = place(pair.y, others.y);
    real of_pp = work[pp], of_pq = work[pq], of_qp = work[qp], of_qq = work[qq];
    turn_by(s, half_tangent, of_pp, of_qp);
    turn_by(s, half_tangent, of_pq, of_qq);
    turn_by(other_s, other_half, of_pp, of_pq);
    turn_by(other_s, other_half, of_qp, of_qq);
    work[pp] = of_pp;
    work[pq] = of_pq;
    work[qp] = of_qp;
    work[qq] = of_qq;
}
"""
_ROTATION = """
if (s != 0.0) {
    for (int k = aside; k < columns; k += wide) {
        real first = rotation[pair.x * STRIDE + k], second = rotation[pair.y * STRIDE + k];
        turn_by(s, half_tangent, first, second);
        rotation[pair.x * STRIDE + k] = first;
        rotation[pair.y * STRIDE + k] = second;
    }
}
"""
_SWEEPS = """
for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    real rotated = 0.0;
    for (int turn = 0; turn < turns; ++turn) {
        meet_shared();
        ANGLES
        meet_shared();
        for (int t = down; t < matches; t += high) {
            ivec2 pair = players(t, turn, turns);
            real s = sines[t], half_tangent = halves[t];
            BLOCKS
            ROTATION
        }
    }
    if (largest(rotated) == 0.0) break;
}
"""
_IDENTITY = """
for (int e = lane; e < SIDE * STRIDE; e += LOCAL) rotation[e] = e % (STRIDE + 1) == 0 ? 1.0 : 0.0;
"""
_RESULT = """
for (int r = down; r < rows; r += high) {
    for (int c = aside; c < columns; c += wide) {
        x.data[r * columns + c] = work[place(r, c)];
        x.data[rotation_begin + r * columns + c] = rotation[r * STRIDE + c];
    }
}
"""
# The same on a GPU, whose rotation is corrected by a step of Newton's method, as two products by other kernels do on a
# CPU driver. What exceeds one in the product with its transpose takes the place of the matrix.
_ORTHONORMAL_RESULT = """
for (int r = down; r < rows; r += high)
    for (int c = aside; c < columns; c += wide) x.data[r * columns + c] = work[place(r, c)];
meet_shared();
for (int r = down; r < rows; r += high) {
    for (int c = aside; c < columns; c += wide) {
        real excess = r == c ? -1.0 : 0.0;
        for (int k = 0; k < columns; ++k) excess += rotation[r * STRIDE + k] * rotation[c * STRIDE + k];
        work[r * STRIDE + c] = excess;
    }
}
meet_shared();
for (int r = down; r < rows; r += high) {
    for (int c = aside; c < columns; c += wide) {
        real excess = 0.0;
        for (int k = 0; k < columns; ++k) excess += work[r * STRIDE + k] * rotation[k * STRIDE + c];
        x.data[rotation_begin + r * columns + c] = rotation[r * STRIDE + c] - 0.5 * excess;
    }
}
"""


def corrects_rotations(profile: DeviceProfile) -> bool:
    """Whether rotations are as orthonormal as their dtype allows: on a GPU, where two kernels more take longer."""
    return profile.kind == "gpu"


def most_rotated(dtype: DType, profile: DeviceProfile) -> int:
    """The most rows of a symmetric matrix that a workgroup keeps and rotates."""
    has_invocations = profile.max_workgroup_invocations >= LARGE_ROTATIONS.invocations
    has_memory = profile.shared_memory_bytes >= LARGE_ROTATIONS.shared_bytes(dtype)
    is_large = profile.kind == "gpu" and has_invocations and has_memory
    return LARGE_ROTATIONS.rows if is_large else MATRICES.eigenvalues


def open_rotations(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> MatrixRoutine:
    """A kernel that may declare rotations."""
    rows = kernel.graph.outputs[0].operands[0].shape[-1]
    invocations = LARGE_ROTATIONS.invocations if rows > MATRICES.eigenvalues else None
    return MatrixRoutine(kernel, profile, lifted, invocations=invocations)


def declare_rotations(routine: MatrixRoutine, across: bool = False) -> None:
    """The shared arrays `work`, a symmetric matrix in its lower triangle, and `rotation`, and the grid of invocations.

    `across`: rows of the first half meet only those of the second, which has as many.
    """
    side = MATRICES.eigenvalues if routine.rows <= MATRICES.eigenvalues else LARGE_ROTATIONS.rows
    routine.declare(_SHARED.replace("SIDE_OF_MATRIX", str(side)))
    for function in (_OPPONENTS if across else PLAYERS, _PLACES, _TURN):
        routine.declare(function)
    routine.write(_GRID.replace("TURNS", "matches" if across else "2 * matches - 1"))


def write_rotations(routine: MatrixRoutine, negligible: str, sweeps: int, accumulated: bool) -> None:
    """Makes `work` diagonal in at most so many sweeps, and, if asked for, `rotation` the product of the rotations.

    Elements whose magnitude is at most `negligible` stay.
    """
    if accumulated:
        routine.write(_IDENTITY)
    text = _SWEEPS.replace("SWEEPS", str(sweeps)).replace("ANGLES", _ANGLES.strip()).replace("BLOCKS", _BLOCKS.strip())
    text = text.replace("ROTATION", _ROTATION.strip() if accumulated else "")
    routine.write(text.replace("NEGLIGIBLE", negligible))


def emit_jacobi(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of jacobi."""
    routine = open_rotations(kernel, profile, lifted)
    routine.integer("rotation_begin", routine.rows * routine.columns)
    attrs = routine.node.attrs
    declare_rotations(routine, attrs["across"])
    routine.load("work[r * STRIDE + c]", "c <= r")
    unit = float(np.finfo(routine.dtype.numpy).eps)
    element, cosine = (routine.number(factor * unit) for factor in (NEGLIGIBLE_ELEMENT, _NEGLIGIBLE_COSINE))
    relative = f"{cosine} * sqrt(of_p) * sqrt(of_q)"
    write_rotations(routine, relative if attrs["relative"] else element, attrs["sweeps"], accumulated=True)
    routine.write("meet_shared();")
    routine.write(_ORTHONORMAL_RESULT if corrects_rotations(profile) else _RESULT)
    return routine.close()
