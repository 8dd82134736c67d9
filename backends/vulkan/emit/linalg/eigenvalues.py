"""Eigenvalues of small symmetric matrices, and their vectors, by Jacobi's rotations.

The matrix is divided by its largest element, so that squares do not overflow.
"""

from __future__ import annotations

from math import nan

import numpy as np

from lavax.backends.vulkan.emit.linalg.jacobi import (
    NEGLIGIBLE_ELEMENT,
    declare_rotations,
    open_rotations,
    write_rotations,
)
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import MATRICES

_SCALE = """
meet_shared();
real scale = 0.0, bad = 0.0, norm = 0.0;
for (int r = down; r < rows; r += high) {
    for (int c = aside; c <= r; c += wide) {
        real magnitude = abs(work[r * STRIDE + c]);
        scale = max(scale, magnitude);
        if (!(magnitude <= GREATEST)) bad = 1.0;
    }
}
bad = largest(bad);
scale = bad > 0.0 ? 1.0 : largest(scale);
scale = scale > 0.0 ? scale : 1.0;
for (int r = down; r < rows; r += high) {
    for (int c = aside; c <= r; c += wide) {
        real part = work[r * STRIDE + c] / scale;
        norm += (c < r ? 2.0 : 1.0) * part * part;
        work[r * STRIDE + c] = bad > 0.0 ? 0.0 : part;
    }
}
real negligible = NEGLIGIBLE * sqrt(total(norm));
"""
# The rank of each value; equal values keep their order. Then `halves` are signs.
_ORDER = """
meet_shared();
for (int k = lane; k < columns; k += LOCAL) {
    real value = work[k * STRIDE + k];
    int rank = 0;
    for (int j = 0; j < columns; ++j) {
        real other = work[j * STRIDE + j];
        if (other < value || (other == value && j < k)) ++rank;
    }
    ranks[k] = rank;
    x.data[rank] = bad > 0.0 ? FAILED : value * scale;
    EXTREME
}
"""
_EXTREME = """
real highest = 0.0, lowest = 0.0;
for (int j = 0; j < columns; ++j) {
    highest = max(highest, rotation[k * STRIDE + j]);
    lowest = min(lowest, rotation[k * STRIDE + j]);
}
signs[k] = highest >= -lowest ? 1.0 : -1.0;
"""
_VECTORS = """
meet_shared();
for (int r = down; r < rows; r += high)
    for (int c = aside; c < columns; c += wide)
        x.data[vectors + ranks[r] * columns + c] = bad > 0.0 ? FAILED : signs[r] * rotation[r * STRIDE + c];
"""


def emit_eigh(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of eigh."""
    routine = open_rotations(kernel, profile, lifted)
    limits = np.finfo(routine.dtype.numpy)
    vectors = routine.node.attrs["vectors"]
    if vectors:
        routine.starts("vectors")
    declare_rotations(routine)
    routine.declare("shared int ranks[SIDE];\nshared real signs[SIDE];")
    routine.load("work[r * STRIDE + c]", "c <= r")
    negligible = routine.number(NEGLIGIBLE_ELEMENT * limits.eps)
    routine.write(_SCALE.replace("GREATEST", routine.number(limits.max)).replace("NEGLIGIBLE", negligible))
    write_rotations(routine, "negligible", MATRICES.sweeps, accumulated=vectors)
    failed = routine.number(nan)
    routine.write(_ORDER.replace("EXTREME", _EXTREME.strip() if vectors else "").replace("FAILED", failed))
    if vectors:
        routine.write(_VECTORS.replace("FAILED", failed))
    return routine.close()
