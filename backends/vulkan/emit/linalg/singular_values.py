"""Singular values of small matrices, and their vectors, by Jacobi's rotations of pairs of columns (Golub and Van Loan,
8.6.3). Disjoint pairs are rotated at once, each pair in turn as in a round-robin tournament; a sweep takes in every
pair, and sweeps end when there is nothing left to rotate.

The matrix is divided by its largest element, so that squares do not overflow.
"""

from __future__ import annotations

from math import nan

import numpy as np

from lavax.backends.vulkan.emit.linalg.jacobi import PLAYERS
from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# Convergence is quadratic: six or seven sweeps suffice for the matrices that come here, or twice as many for columns of
# very different lengths. The number keeps loops within the iterations that every driver allows a kernel.
_SWEEPS = 30
# Smaller cosines of angles between columns are mere rounding; over the root of the number of rows, in units in the last
# place of 1.
_NEGLIGIBLE_COSINE = 1 / 2

_SCALE = """
meet();
real scale = 0.0, bad = 0.0;
for (int e = lane; e < rows * columns; e += LOCAL) {
    real magnitude = abs(x.data[work + e / columns * kept + e % columns]);
    scale = max(scale, magnitude);
    if (!(magnitude <= GREATEST)) bad = 1.0;
}
bad = largest(bad);
scale = bad > 0.0 ? 1.0 : largest(scale);
scale = scale > 0.0 ? scale : 1.0;
for (int e = lane; e < rows * columns; e += LOCAL) x.data[work + e / columns * kept + e % columns] /= scale;
"""
_IDENTITY = """
for (int e = lane; e < columns * columns; e += LOCAL)
    x.data[VECTORS + e] = e / columns == e % columns ? 1.0 : 0.0;
"""
_PAIR = "ivec2 pair = players(t, turn, even - 1);\nint p = pair.x, q = pair.y;"
# Of the lanes that share a pair.
_FOLD_PAIR = """
for (int width = WIDE / 2; width > 0; width /= 2) {
    of_p += subgroupShuffleXor(of_p, uint(width));
    of_q += subgroupShuffleXor(of_q, uint(width));
    across += subgroupShuffleXor(across, uint(width));
}
"""
# Half the angle's tangent in place of the cosine, so that rounding errors do not add up.
_TURN = """
{
    real first = x.data[FIRST], second = x.data[SECOND], half_tangent = s / (1.0 + c);
    x.data[FIRST] = first - s * (second + half_tangent * first);
    x.data[SECOND] = second + s * (first - half_tangent * second);
}
"""


def _turn(first: str, second: str) -> str:
    return _TURN.strip().replace("FIRST", first).replace("SECOND", second)


# Orders the values: exchanges each and its vector with the largest of those that remain.
_ORDER = """
meet();
for (int k = 0; k < columns; ++k) {
    int best = k;
    for (int j = k + 1; j < columns; ++j) if (x.data[j] BEFORE x.data[best]) best = j;
    meet();
    if (best != k) {
        if (lane == 0) {
            real held = x.data[k];
            x.data[k] = x.data[best];
            x.data[best] = held;
        }
        EXCHANGE
    }
    meet();
}
"""
_EXCHANGE = """
for (int j = lane; j < COUNT; j += LOCAL) {
    real held = x.data[FIRST];
    x.data[FIRST] = x.data[SECOND];
    x.data[SECOND] = held;
}
"""
_SIGNS = """
for (int k = lane; k < columns; k += LOCAL) {
    real extreme = 0.0;
    for (int j = 0; j < columns; ++j) {
        real part = x.data[VECTORS + k * columns + j];
        if (abs(part) > abs(extreme)) extreme = part;
    }
    if (extreme < 0.0) {
        for (int j = 0; j < columns; ++j) x.data[VECTORS + k * columns + j] *= -1.0;
        OTHER
    }
}
"""
_FAIL = """
meet();
if (bad > 0.0) for (int e = lane; e < size; e += LOCAL) x.data[e] = FAILED;
"""


def _exchange(count: str, first: str, second: str) -> str:
    return _EXCHANGE.strip().replace("COUNT", count).replace("FIRST", first).replace("SECOND", second)


# Each invocation owns pairs of columns, or has some rows of them. All lanes of a subgroup take as many turns.
_SVD = """
int even = (columns + 1) / 2 * 2, first_match = even - columns;
int aside = lane % WIDE, down = lane / WIDE;
for (int sweep = 0; sweep < SWEEPS && bad == 0.0; ++sweep) {
    real rotated = 0.0;
    for (int turn = 0; turn < even - 1; ++turn) {
        meet();
        for (int start = first_match; start < even / 2; start += LOCAL / WIDE) {
            int t = min(start + down, even / 2 - 1);
            bool is_match = start + down < even / 2;
            PAIR
            real of_p = 0.0, of_q = 0.0, across = 0.0;
            for (int r = aside; r < rows; r += WIDE) {
                real first = x.data[work + r * kept + p], second = x.data[work + r * kept + q];
                of_p += first * first;
                of_q += second * second;
                across += first * second;
            }
            FOLD
            if (is_match && abs(across) > NEGLIGIBLE * sqrt(of_p) * sqrt(of_q) && across != 0.0) {
                real tilt = (of_q - of_p) / (2.0 * across);
                real slope = 1.0 / (abs(tilt) + sqrt(1.0 + tilt * tilt));
                slope = tilt < 0.0 ? -slope : slope;
                real c = 1.0 / sqrt(1.0 + slope * slope), s = slope * c;
                rotated = 1.0;
                for (int k = aside; k < rows; k += WIDE) TURN_LEFT
                TURN_RIGHT
            }
        }
    }
    if (largest(rotated) == 0.0) break;
}
meet();
for (int k = lane; k < columns; k += LOCAL) {
    real length = 0.0;
    for (int r = 0; r < rows; ++r) length += x.data[work + r * kept + k] * x.data[work + r * kept + k];
    x.data[k] = sqrt(length);
}
"""
# Left vectors are the columns divided by their lengths. If a length is mere rounding, or a complete set lacks a vector,
# Gram and Schmidt's method, applied twice, makes it from a unit vector: the one with the smallest share in the vectors
# before.
_LEFT = """
real least = max(x.data[0] * UNIT, 10.0 * LEAST);
int known = columns;
for (int k = columns - 1; k >= 0; --k) if (!(x.data[k] > least)) known = k;
for (int e = lane; e < rows * known; e += LOCAL) x.data[work + e / known * kept + e % known] /= x.data[e % known];
for (int k = known; k < kept; ++k) {
    meet();
    int choice = 0;
    real smallest = 1e30;
    for (int r = 0; r < rows; ++r) {
        real taken = 0.0;
        for (int j = 0; j < k; ++j) taken += x.data[work + r * kept + j] * x.data[work + r * kept + j];
        if (taken < smallest) { smallest = taken; choice = r; }
    }
    for (int r = lane; r < rows; r += LOCAL) {
        real part = r == choice ? 1.0 : 0.0;
        for (int j = 0; j < k; ++j) part -= x.data[work + choice * kept + j] * x.data[work + r * kept + j];
        x.data[work + r * kept + k] = part;
    }
    for (int j = 0; j < k; ++j) {
        meet();
        real shared_part = 0.0;
        for (int r = lane; r < rows; r += LOCAL)
            shared_part += x.data[work + r * kept + j] * x.data[work + r * kept + k];
        shared_part = total(shared_part);
        for (int r = lane; r < rows; r += LOCAL)
            x.data[work + r * kept + k] -= shared_part * x.data[work + r * kept + j];
    }
    real length = 0.0;
    for (int r = lane; r < rows; r += LOCAL) length += x.data[work + r * kept + k] * x.data[work + r * kept + k];
    length = sqrt(total(length));
    for (int r = lane; r < rows; r += LOCAL) x.data[work + r * kept + k] /= length;
}
"""


def _in_shared_memory(profile: DeviceProfile) -> bool:
    """Whether a matrix has one subgroup, which exchanges values, and is in shared memory with its vectors: on a GPU.

    Memory is in a CPU driver's cache.
    """
    return profile.kind == "gpu" and profile.subgroup_shuffle and profile.knows_subgroup_size


def _lanes_of_pair(columns: int, lanes: int) -> int:
    """How many lanes share a pair if all pairs of a turn are rotated at once."""
    return 1 << max((lanes // max((columns + 1) // 2, 1)).bit_length() - 1, 0)


def emit_svd(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of svd."""
    is_shared = _in_shared_memory(profile)
    routine = MatrixRoutine(kernel, profile, lifted, in_subgroup=is_shared)
    wide = _lanes_of_pair(routine.columns, profile.subgroup_size) if is_shared else 1
    limits = np.finfo(routine.dtype.numpy)
    attrs = routine.node.attrs
    routine.declare(PLAYERS)
    vectors = attrs["vectors"]
    place = "left" if vectors else "scratch"
    routine.starts(place, *(["right"] if vectors else []))
    routine.integer("kept", routine.rows if vectors and attrs["complete"] else routine.columns)
    memory = "whole[" if is_shared else "x.data["

    def write(text: str) -> None:
        routine.write(text.replace("x.data[", memory))

    if is_shared:
        routine.declare(f"shared real whole[{routine.node.type.size // routine.count}];")
    routine.write(f"int work = {place};")
    routine.load(f"{memory}work + r * kept + c]")
    write(_SCALE.replace("GREATEST", routine.number(limits.max)))
    if vectors:
        write(_IDENTITY.replace("VECTORS", "right"))
    turn_right = _turn("right + p * columns + k", "right + q * columns + k")
    algorithm = _SVD.replace("TURN_LEFT", _turn("work + k * kept + p", "work + k * kept + q"))
    algorithm = algorithm.replace(
        "TURN_RIGHT", f"for (int k = aside; k < columns; k += WIDE) {turn_right}" if vectors else ""
    )
    algorithm = algorithm.replace("FOLD", _FOLD_PAIR.strip() if wide > 1 else "").replace("WIDE", str(wide))
    algorithm = algorithm.replace("PAIR", _PAIR).replace("SWEEPS", str(_SWEEPS))
    negligible = f"({routine.number(_NEGLIGIBLE_COSINE * limits.eps)} * sqrt(real(rows)))"
    write(algorithm.replace("NEGLIGIBLE", negligible))
    exchange = [
        _exchange("columns", "right + k * columns + j", "right + best * columns + j"),
        _exchange("rows", "work + j * kept + k", "work + j * kept + best"),
    ]
    write(_ORDER.replace("BEFORE", ">").replace("EXCHANGE", "\n".join(exchange) if vectors else ""))
    if vectors:
        write(_LEFT.replace("UNIT", routine.number(limits.eps)).replace("LEAST", routine.number(limits.tiny)))
        write("meet();")
        other = "for (int j = 0; j < rows; ++j) x.data[work + j * kept + k] *= -1.0;"
        write(_SIGNS.replace("VECTORS", "right").replace("OTHER", other))
    else:
        write("for (int e = lane; e < rows * columns; e += LOCAL) x.data[work + e] = 0.0;")
    write("for (int k = lane; k < columns; k += LOCAL) x.data[k] *= scale;")
    write(_FAIL.replace("FAILED", routine.number(nan)))
    if is_shared:
        routine.write("meet();\nfor (int e = lane; e < size; e += LOCAL) x.data[e] = whole[e];")
    return routine.close()
