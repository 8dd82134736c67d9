"""Singular values and vectors of bidiagonal matrices by implicit QR steps (Golub and Van Loan, 8.6.2)."""

from __future__ import annotations

import numpy as np

from lavax.backends.vulkan.emit.linalg.reflection import least_beside
from lavax.backends.vulkan.emit.linalg.rotations import RotatingKernel, without_rows
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import BIDIAGONAL

# `first` begins the part that ends at `last` and falls apart nowhere.
_FIND_BEGIN = """
first = last;
while (first > 0 && !NEGLIGIBLE(beside[first - 1], diagonal[first - 1], diagonal[first])) --first;
"""
# The smaller singular value of the last two rows, divided by the largest of their elements so that squares are numbers.
_FIND_SHIFT = """
real a = abs(diagonal[last - 1]), b = abs(beside[last - 1]), d = abs(diagonal[last]), most = max(max(a, b), d);
a /= most;
b /= most;
d /= most;
real shift = 2.0 * a * d / (sqrt((a + d) * (a + d) + b * b) + sqrt((a - d) * (a - d) + b * b)) * most;
real head = diagonal[first], part = head == 0.0 ? 0.0 : shift / abs(head);
real f = part * part < UNIT ? head : (abs(head) - shift) * ((head < 0.0 ? -1.0 : 1.0) + shift / head);
"""
# Numbers too small for their squares are as good as zero.
_ROTATION = """
real radius = sqrt(f * f + g * g), inverse = 1.0 / radius;
bool is_some = radius >= LEAST;
real c = is_some ? f * inverse : 1.0, s = is_some ? g * inverse : 0.0;
radius = is_some ? radius : f;
"""
_STEPS = """
int first = 0, last = rows - 1, rotations = 0;
bool is_new = true;
while (last >= 0 && rotations < MOST && !is_bad) {
    if (is_new) {
        FIND_BEGIN
        is_new = false;
    }
    ++rotations;
    if (first == last) {
        --last;
        is_new = true;
        continue;
    }
    FIND_SHIFT
    real g = beside[first], own = head, behind = head;
    int cut = first;
    OPEN_ROWS
    for (int i = first; i < last; ++i) {
        ++rotations;
        real next = diagonal[i + 1], above = beside[i], joint;
        {
            ROTATION
            RIGHT_ROWS
            if (i > first) beside[i - 1] = radius;
            joint = radius;
            f = c * own + s * above;
            above = c * above - s * own;
            g = s * next;
            next = c * next;
        }
        {
            ROTATION
            LEFT_ROWS
            diagonal[i] = radius;
            f = c * above + s * next;
            own = c * next - s * above;
            if (i > first && NEGLIGIBLE(joint, behind, radius)) cut = i;
            behind = radius;
            if (i + 1 < last) {
                real after = beside[i + 1];
                g = s * after;
                beside[i + 1] = c * after;
            }
        }
    }
    CLOSE_ROWS
    diagonal[last] = own;
    beside[last - 1] = f;
    first = cut;
    last -= NEGLIGIBLE(f, behind, own) ? 1 : 0;
}
is_bad = is_bad || last >= 0;
for (int k = 0; k < rows; ++k) {
    real sign = diagonal[k] < 0.0 ? -1.0 : 1.0;
    diagonal[k] *= sign;
    SIGN_ROWS
}
"""


def emit_bidiagonal_svd(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of bidiagonal_svd."""
    left, right, diagonal, beside = kernel.graph.outputs[0].operands
    writer = RotatingKernel(kernel, profile, lifted, {"left": left, "right": right}, diagonal, beside)
    dtype = writer.node.dtype
    text = _STEPS.replace("FIND_BEGIN", _FIND_BEGIN.strip()).replace("FIND_SHIFT", _FIND_SHIFT.strip())
    text = text.replace("ROTATION", _ROTATION.strip()).replace("MOST", str(BIDIAGONAL.most_rotations))
    text = text.replace("UNIT", writer.number(float(np.finfo(dtype.numpy).eps)))
    text = text.replace("LEAST", writer.number(least_beside(dtype)))
    writer.write(_with_rows(writer, text) if writer.with_vectors else without_rows(text))
    return writer.close(falling=True)


def _with_rows(writer: RotatingKernel, text: str) -> str:
    """The algorithm with what is done to the rows of the vectors."""
    both = {"OPEN_ROWS": "real SIDE_held# = SIDE#[first];", "CLOSE_ROWS": "SIDE#[last] = SIDE_held#;"}
    turn = "real low# = SIDE#[i + 1];\nSIDE#[i] = c * SIDE_held# + s * low#;\nSIDE_held# = c * low# - s * SIDE_held#;"
    for place, lines in both.items():
        of_sides = [writer.for_rows(lines.replace("SIDE", side)) for side in ("left", "right")]
        text = text.replace(place, "\n".join(of_sides))
    for side in ("left", "right"):
        text = text.replace(f"{side.upper()}_ROWS", writer.for_rows(turn.replace("SIDE", side)))
    return text.replace("SIGN_ROWS", writer.for_rows("right#[k] *= sign;"))
