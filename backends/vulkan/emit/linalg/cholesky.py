"""Cholesky's factor, column by column or in panels; each invocation owns rows (Golub and Van Loan, 4.2.5)."""

from __future__ import annotations

from math import nan

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.glsl.expressions import type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

# The diagonal holds the pivots until the end: only rows below it read a column.
_COLUMN = """
    meet();
    for (int r = k + (lane - k % LOCAL + LOCAL) % LOCAL; r < rows; r += LOCAL) {
        real sum = 0.0;
        for (int j = first; j < k; ++j) sum += x.data[r * rows + j] * x.data[k * rows + j];
        x.data[r * rows + k] -= sum;
    }
    meet();
    real pivot = x.data[k * rows + k];
    positive = positive && pivot > 0.0;
    real root = sqrt(pivot);
    for (int r = k + 1 + (lane - (k + 1) % LOCAL + LOCAL) % LOCAL; r < rows; r += LOCAL) x.data[r * rows + k] /= root;
"""
_BY_COLUMNS = """
bool positive = true;
for (int k = 0, first = 0; k < rows; ++k) {
    COLUMN
}
"""
# The products of four columns with all columns before them are summed together, for two rows of an invocation, so that
# what is read serves several products. The columns then follow each other as above.
_BY_PANELS = """
bool positive = true;
for (int first = 0; first < rows; first += 4) {
    int end = min(first + 4, rows);
    meet();
    if (first > 0) {
        int a = first * rows, b = min(first + 1, rows - 1) * rows;
        int c = min(first + 2, rows - 1) * rows, d = min(first + 3, rows - 1) * rows;
        for (int one = first + lane; one < rows; one += 2 * LOCAL) {
            int two = min(one + LOCAL, rows - 1);
            real4 p = real4(0.0), q = real4(0.0);
            for (int j = 0; j < first; ++j) {
                real4 v = real4(x.data[a + j], x.data[b + j], x.data[c + j], x.data[d + j]);
                p += v * x.data[one * rows + j];
                q += v * x.data[two * rows + j];
            }
            for (int k = first; k < end; ++k) {
                if (k <= one) x.data[one * rows + k] -= p[k - first];
                if (one + LOCAL < rows && k <= two) x.data[two * rows + k] -= q[k - first];
            }
        }
    }
    for (int k = first; k < end; ++k) {
        COLUMN
    }
}
"""
_ROOTS = """
meet();
for (int e = lane; e < rows * rows; e += LOCAL) {
    if (!positive) x.data[e] = FAILED;
    else if (e / rows == e % rows) x.data[e] = sqrt(x.data[e]);
}
"""


def emit_cholesky(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of cholesky."""
    routine = MatrixRoutine(kernel, profile, lifted)
    routine.write("for (int e = lane; e < rows * columns; e += LOCAL) x.data[e] = 0.0;")
    routine.load("x.data[e]", "c <= r")
    by_panels = profile.kind == "cpu"
    if by_panels:
        routine.declare(f"#define real4 {type_name(routine.dtype, 4)}")
    routine.write((_BY_PANELS if by_panels else _BY_COLUMNS).replace("COLUMN", _COLUMN.strip()))
    routine.write(_ROOTS.replace("FAILED", routine.number(nan)))
    return routine.close()
