"""Householder's reflections, and their product; each invocation owns columns (Golub and Van Loan, 5.2).

Signs are LAPACK's: a column that is zero below the diagonal is left as it is, any other gets a diagonal of the sign
opposite to what was there.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# Vectors are stored below the diagonal, each with a one on it that is not stored; `kept` is the number of columns of
# their matrix. Lengths are those of the column divided by its largest element, so that squares do not overflow.
_REFLECT = """
for (int k = 0; k < columns; ++k) {
    meet();
    real highest = 0.0;
    for (int r = k + lane; r < rows; r += LOCAL) highest = max(highest, abs(x.data[r * kept + k]));
    highest = largest(highest);
    real below = 0.0;
    for (int r = k + 1 + lane; r < rows; r += LOCAL) {
        real part = x.data[r * kept + k] / highest;
        below += part * part;
    }
    below = total(below);
    if (highest != 0.0 && below != 0.0) {
        real alpha = x.data[k * kept + k];
        real part = alpha / highest;
        real beta = highest * sqrt(part * part + below) * (alpha < 0.0 ? 1.0 : -1.0);
        real tau = (beta - alpha) / beta;
        for (int r = k + 1 + lane; r < rows; r += LOCAL) x.data[r * kept + k] /= alpha - beta;
        meet();
        if (lane == 0) x.data[k * kept + k] = beta;
        for (int c = k + 1 + lane; c < columns; c += LOCAL) {
            real product = x.data[k * kept + c];
            for (int r = k + 1; r < rows; ++r) product += x.data[r * kept + k] * x.data[r * kept + c];
            product *= tau;
            x.data[k * kept + c] -= product;
            for (int r = k + 1; r < rows; ++r) x.data[r * kept + c] -= product * x.data[r * kept + k];
        }
    }
}
"""
_VECTORS_AND_TRIANGLE = """
meet();
for (int e = lane; e < columns * columns; e += LOCAL)
    x.data[r_begin + e] = e % columns >= e / columns ? x.data[e] : 0.0;
meet();
for (int k = lane; k < columns; k += LOCAL) {
    real below = 0.0;
    for (int r = k + 1; r < rows; ++r) below = below == 0.0 ? x.data[r * columns + k] : below;
    for (int r = 0; r < k; ++r) x.data[r * columns + k] = 0.0;
    x.data[k * columns + k] = below == 0.0 ? 0.0 : 1.0;
}
"""
# The product of the reflections, the last one first, overwrites their vectors.
_TRIANGLE_AND_PRODUCT = """
meet();
for (int e = lane; e < kept * columns; e += LOCAL)
    x.data[r_begin + e] = e % columns >= e / columns ? x.data[e / columns * kept + e % columns] : 0.0;
for (int k = columns - 1; k >= 0; --k) {
    meet();
    real below = 0.0;
    for (int r = k + 1 + lane; r < rows; r += LOCAL) below += x.data[r * kept + k] * x.data[r * kept + k];
    below = total(below);
    real tau = below == 0.0 ? 0.0 : 2.0 / (1.0 + below);
    for (int c = k + 1 + lane; c < kept; c += LOCAL) {
        real product = 0.0;
        for (int r = k + 1; r < rows; ++r) product += x.data[r * kept + k] * x.data[r * kept + c];
        product *= tau;
        x.data[k * kept + c] = -product;
        for (int r = k + 1; r < rows; ++r) x.data[r * kept + c] -= product * x.data[r * kept + k];
    }
    meet();
    for (int r = lane; r < rows; r += LOCAL)
        x.data[r * kept + k] = r < k ? 0.0 : (r == k ? 1.0 - tau : -tau * x.data[r * kept + k]);
}
"""


def emit_householder(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of householder."""
    routine = MatrixRoutine(kernel, profile, lifted)
    routine.integer("kept", routine.columns)
    routine.integer("r_begin", routine.rows * routine.columns)
    routine.load("x.data[e]")
    routine.write(_REFLECT)
    routine.write(_VECTORS_AND_TRIANGLE)
    return routine.close()


def emit_qr(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of qr."""
    routine = MatrixRoutine(kernel, profile, lifted)
    complete = routine.node.attrs["complete"]
    kept = routine.rows if complete else routine.columns
    routine.integer("kept", kept)
    routine.integer("r_begin", routine.rows * kept)
    if complete:
        routine.write(
            "for (int e = lane; e < rows * kept; e += LOCAL)\n"
            "    if (e % kept >= columns) x.data[e] = e / kept == e % kept ? 1.0 : 0.0;"
        )
    routine.load("x.data[r * kept + c]")
    routine.write(_REFLECT)
    routine.write(_TRIANGLE_AND_PRODUCT)
    return routine.close()
