"""Householder's reflections; each invocation has columns of its own (Golub and Van Loan, 5.2.2).

Signs are LAPACK's: a column that is zero below the diagonal is left as it is, any other gets a diagonal of the sign
opposite to what was there.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.launch import Launch
from lavax.backends.vulkan.emit.matrices import MatrixRoutine
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# Vectors come to stand below the diagonal, with a one in it that is stored in the end. Lengths are of the column
# divided by its largest element, so that squares do not overflow.
_REFLECT = """
for (int k = 0; k < columns; ++k) {
    meet();
    float highest = 0.0;
    for (int r = k + lane; r < rows; r += LOCAL) highest = max(highest, abs(x.data[r * columns + k]));
    highest = largest(highest);
    float below = 0.0;
    for (int r = k + 1 + lane; r < rows; r += LOCAL) {
        float part = x.data[r * columns + k] / highest;
        below += part * part;
    }
    below = total(below);
    if (highest != 0.0 && below != 0.0) {
        float alpha = x.data[k * columns + k];
        float part = alpha / highest;
        float beta = highest * sqrt(part * part + below) * (alpha < 0.0 ? 1.0 : -1.0);
        float tau = (beta - alpha) / beta;
        for (int r = k + 1 + lane; r < rows; r += LOCAL) x.data[r * columns + k] /= alpha - beta;
        meet();
        if (lane == 0) x.data[k * columns + k] = beta;
        for (int c = k + 1 + lane; c < columns; c += LOCAL) {
            float product = x.data[k * columns + c];
            for (int r = k + 1; r < rows; ++r) product += x.data[r * columns + k] * x.data[r * columns + c];
            product *= tau;
            x.data[k * columns + c] -= product;
            for (int r = k + 1; r < rows; ++r) x.data[r * columns + c] -= product * x.data[r * columns + k];
        }
    }
}
meet();
for (int e = lane; e < columns * columns; e += LOCAL)
    x.data[r_begin + e] = e % columns >= e / columns ? x.data[e] : 0.0;
meet();
for (int k = lane; k < columns; k += LOCAL) {
    float below = 0.0;
    for (int r = k + 1; r < rows; ++r) below = below == 0.0 ? x.data[r * columns + k] : below;
    for (int r = 0; r < k; ++r) x.data[r * columns + k] = 0.0;
    x.data[k * columns + k] = below == 0.0 ? 0.0 : 1.0;
}
"""


def emit_householder(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of householder."""
    routine = MatrixRoutine(kernel, profile, lifted)
    routine.integer("r_begin", routine.rows * routine.columns)
    routine.load("e")
    routine.write(_REFLECT)
    return routine.close()
