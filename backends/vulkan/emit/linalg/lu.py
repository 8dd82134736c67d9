"""Gaussian elimination with partial pivoting; invocations share the elements (Golub and Van Loan, 3.4.1)."""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.lu_by_columns import eliminate_by_columns, suits_columns
from lavax.backends.vulkan.emit.linalg.lu_in_registers import eliminate_in_registers, suits_registers
from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

_BEGIN = """
for (int r = lane; r < rows; r += LOCAL) x.data[permutation + r] = real(r);
real sign = 1.0;
"""
# The first of equal pivots is taken; a column of zeros stays as it is.
_EXCHANGE = """
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
"""
_BY_ELEMENTS = """
for (int k = 0; k < columns; ++k) {
    EXCHANGE
    if (divisor != 0.0) for (int r = k + 1 + lane; r < rows; r += LOCAL) x.data[r * columns + k] /= divisor;
    meet();
    int width = columns - k - 1;
    for (int e = lane; e < (rows - k - 1) * width; e += LOCAL) {
        int r = k + 1 + e / width, c = k + 1 + e % width;
        x.data[r * columns + c] -= x.data[r * columns + k] * x.data[k * columns + c];
    }
}
"""
# Four columns are eliminated before the others hear of it. Then each invocation takes two columns at a time through
# all rows, with the four pivots' rows in registers, so that an element is read and written once for four pivots.
# Each element has the same numbers subtracted in the same order as above.
_BY_PANELS = """
for (int first = 0; first < columns; first += 4) {
    int end = min(first + 4, columns);
    for (int k = first; k < end; ++k) {
        EXCHANGE
        for (int r = k + 1 + lane; r < rows; r += LOCAL) {
            real factor = x.data[r * columns + k];
            factor = divisor != 0.0 ? factor / divisor : factor;
            x.data[r * columns + k] = factor;
            for (int c = k + 1; c < end; ++c) x.data[r * columns + c] -= factor * x.data[k * columns + c];
        }
    }
    meet();
    int a = first * columns, b = a + columns, c = b + columns, d = c + columns;
    for (int one = end + lane; one < columns; one += 2 * LOCAL) {
        bool both = one + LOCAL < columns;
        int two = both ? one + LOCAL : one;
        real ba = x.data[b + first], ca = x.data[c + first], cb = x.data[c + first + 1];
        real da = x.data[d + first], db = x.data[d + first + 1], dc = x.data[d + first + 2];
        real a1 = x.data[a + one], a2 = x.data[a + two];
        real b1 = x.data[b + one] - ba * a1, b2 = x.data[b + two] - ba * a2;
        real c1 = x.data[c + one] - ca * a1 - cb * b1, c2 = x.data[c + two] - ca * a2 - cb * b2;
        real d1 = x.data[d + one] - da * a1 - db * b1 - dc * c1, d2 = x.data[d + two] - da * a2 - db * b2 - dc * c2;
        x.data[b + one] = b1;
        x.data[c + one] = c1;
        x.data[d + one] = d1;
        if (both) {
            x.data[b + two] = b2;
            x.data[c + two] = c2;
            x.data[d + two] = d2;
        }
        for (int r = end; r < rows; ++r) {
            int row = r * columns;
            real fa = x.data[row + first], fb = x.data[row + first + 1];
            real fc = x.data[row + first + 2], fd = x.data[row + first + 3];
            x.data[row + one] = x.data[row + one] - fa * a1 - fb * b1 - fc * c1 - fd * d1;
            if (both) x.data[row + two] = x.data[row + two] - fa * a2 - fb * b2 - fc * c2 - fd * d2;
        }
    }
}
"""
_END = "if (lane == 0) x.data[parity] = sign;"


def emit_lu(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of lu."""
    if suits_registers(kernel, profile):
        return eliminate_in_registers(kernel, profile, lifted)
    routine = MatrixRoutine(kernel, profile, lifted)
    routine.starts("permutation", "parity")
    if suits_columns(routine):
        return eliminate_by_columns(routine)
    routine.load("x.data[e]")
    routine.write(_BEGIN)
    routine.write((_BY_PANELS if profile.kind == "cpu" else _BY_ELEMENTS).replace("EXCHANGE", _EXCHANGE.strip()))
    routine.write(_END)
    return routine.close()
