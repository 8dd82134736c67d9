"""Cholesky's factor, column by column; each invocation owns rows (Golub and Van Loan, 4.2.5)."""

from __future__ import annotations

from math import nan

from lavax.backends.vulkan.emit.linalg.cholesky_by_columns import factor_by_columns, suits_columns
from lavax.backends.vulkan.emit.linalg.cholesky_in_registers import factor_in_registers
from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# The diagonal holds the pivots until the end: only rows below it read a column.
_BY_ROWS = """
bool positive = true;
for (int k = 0; k < rows; ++k) {
    meet();
    for (int r = k + (lane - k % LOCAL + LOCAL) % LOCAL; r < rows; r += LOCAL) {
        real sum = 0.0;
        for (int j = 0; j < k; ++j) sum += x.data[r * rows + j] * x.data[k * rows + j];
        x.data[r * rows + k] -= sum;
    }
    meet();
    real pivot = x.data[k * rows + k];
    positive = positive && pivot > 0.0;
    real root = sqrt(pivot);
    for (int r = k + 1 + (lane - (k + 1) % LOCAL + LOCAL) % LOCAL; r < rows; r += LOCAL) x.data[r * rows + k] /= root;
}
meet();
for (int e = lane; e < rows * rows; e += LOCAL) {
    if (!positive && e % rows <= e / rows) x.data[e] = FAILED;
    else if (e / rows == e % rows) x.data[e] = sqrt(x.data[e]);
}
"""


def emit_cholesky(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of cholesky."""
    if profile.kind == "gpu":
        return factor_in_registers(kernel, profile, lifted)
    routine = MatrixRoutine(kernel, profile, lifted)
    if suits_columns(routine):
        return factor_by_columns(routine)
    routine.write("for (int e = lane; e < rows * columns; e += LOCAL) x.data[e] = 0.0;")
    routine.load("x.data[e]", "c <= r")
    routine.write(_BY_ROWS.replace("FAILED", routine.number(nan)))
    return routine.close()
