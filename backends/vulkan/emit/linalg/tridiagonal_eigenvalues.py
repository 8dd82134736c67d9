"""Eigenvalues and vectors of symmetric tridiagonal matrices by implicit QL steps (Golub and Van Loan, 8.3)."""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.reflection import least_beside
from lavax.backends.vulkan.emit.linalg.rotations import RotatingKernel, without_rows
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import TRIDIAGONAL

# `last` is the end of the part that begins at `first` and falls apart nowhere.
_FIND_END = """
last = first;
while (last < rows - 1 && !NEGLIGIBLE(beside[last], diagonal[last], diagonal[last + 1])) ++last;
"""
_STEPS = """
int first = 0, last = 0, rotations = 0;
bool is_new = true;
while (first < rows && rotations < MOST && !is_bad) {
    if (is_new) {
        FIND_END
        is_new = false;
    }
    ++rotations;
    if (last == first) {
        ++first;
        is_new = true;
        continue;
    }
    real shift = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
    real root = sqrt(shift * shift + 1.0);
    real g = diagonal[last] - diagonal[first] + beside[first] / (shift + (shift < 0.0 ? -root : root));
    real s = 1.0, c = 1.0, p = 0.0, behind = diagonal[last];
    int cut = last, i = last - 1;
    real upper = behind;
    OPEN_ROWS
    for (; i >= first; --i) {
        ++rotations;
        real own = beside[i], f = s * own, b = c * own, r = sqrt(f * f + g * g);
        beside[i + 1] = r < LEAST ? 0.0 : r;
        if (r < LEAST) break;
        s = f / r;
        c = g / r;
        real lower = diagonal[i];
        g = upper - p;
        real q = (lower - g) * s + 2.0 * c * b;
        p = s * q;
        real found = g + p;
        diagonal[i + 1] = found;
        if (i + 1 < last && NEGLIGIBLE(r, found, behind)) cut = i + 1;
        behind = found;
        g = c * q - b;
        upper = lower;
        EACH_ROW
    }
    CLOSE_ROWS
    if (i >= first) {
        diagonal[i + 1] = upper - p;
        beside[last] = 0.0;
        is_new = true;
        continue;
    }
    diagonal[first] = upper - p;
    beside[first] = g;
    beside[last] = 0.0;
    first += NEGLIGIBLE(g, diagonal[first], behind) ? 1 : 0;
    last = cut;
}
is_bad = is_bad || first < rows;
"""


def emit_tridiagonal_eigh(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of tridiagonal_eigh."""
    reflections, diagonal, beside = kernel.graph.outputs[0].operands
    writer = RotatingKernel(kernel, profile, lifted, {"row": reflections}, diagonal, beside)
    text = _STEPS.replace("FIND_END", _FIND_END.strip()).replace("MOST", str(TRIDIAGONAL.most_rotations))
    text = text.replace("LEAST", writer.number(least_beside(writer.node.dtype)))
    writer.write(_with_rows(writer, text) if writer.with_vectors else without_rows(text))
    return writer.close(falling=False)


def _with_rows(writer: RotatingKernel, text: str) -> str:
    text = text.replace("OPEN_ROWS", writer.for_rows("real high# = row#[last];"))
    each = "real low# = row#[i];\nrow#[i + 1] = s * low# + c * high#;\nhigh# = c * low# - s * high#;"
    text = text.replace("EACH_ROW", writer.for_rows(each))
    return text.replace("CLOSE_ROWS", writer.for_rows("row#[i + 1] = high#;"))
