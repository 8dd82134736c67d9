"""Gaussian elimination with partial pivoting; invocations share the elements (Golub and Van Loan, 3.4.1)."""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# The first of equal pivots is taken; a column of zeros stays as it is.
_ELIMINATE = """
for (int r = lane; r < rows; r += LOCAL) x.data[permutation + r] = real(r);
real sign = 1.0;
for (int k = 0; k < columns; ++k) {
    meet();
    real highest = -1.0;
    int place = rows;
    for (int r = k + lane; r < rows; r += LOCAL) {
        real magnitude = abs(x.data[r * columns + k]);
        if (magnitude > highest) { highest = magnitude; place = r; }
    }
    real best = largest(highest);
    int pivot = int(-largest(highest == best && place < rows ? -float(place) : -float(rows)));
    pivot = pivot < rows ? pivot : k;
    if (pivot != k) {
        for (int c = lane; c < columns; c += LOCAL) {
            real held = x.data[k * columns + c];
            x.data[k * columns + c] = x.data[pivot * columns + c];
            x.data[pivot * columns + c] = held;
        }
        if (lane == 0) {
            real held = x.data[permutation + k];
            x.data[permutation + k] = x.data[permutation + pivot];
            x.data[permutation + pivot] = held;
        }
        sign = -sign;
        meet();
    }
    real divisor = x.data[k * columns + k];
    if (divisor != 0.0) for (int r = k + 1 + lane; r < rows; r += LOCAL) x.data[r * columns + k] /= divisor;
    meet();
    int width = columns - k - 1;
    for (int e = lane; e < (rows - k - 1) * width; e += LOCAL) {
        int r = k + 1 + e / width, c = k + 1 + e % width;
        x.data[r * columns + c] -= x.data[r * columns + k] * x.data[k * columns + c];
    }
}
if (lane == 0) x.data[parity] = sign;
"""


def emit_lu(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of lu."""
    routine = MatrixRoutine(kernel, profile, lifted)
    routine.starts("permutation", "parity")
    routine.load("x.data[e]")
    routine.write(_ELIMINATE)
    return routine.close()
