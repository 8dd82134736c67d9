"""Householder's reflections as GLSL text: a subgroup finds the one that leaves a single element of a vector."""

from __future__ import annotations

import numpy as np

from lavax.ir.types import DType

# OWN[START…rows - 1] becomes the reflection's u, and zero before and if no reflection is needed; the only element that
# the reflection leaves goes to RESULT.
_REFLECTION = """
real highest = 0.0, below = 0.0, factor = 0.0;
for (int e = START + lane; e < rows; e += LOCAL) highest = max(highest, abs(OWN[e]));
highest = largest(highest);
for (int e = START + 1 + lane; e < rows; e += LOCAL) {
    real part = OWN[e] / highest;
    below += part * part;
}
below = total(below);
real alpha = START < rows ? OWN[min(START, rows - 1)] : 0.0, only = alpha;
meet();
if (highest > LEAST && below != 0.0) {
    real part = alpha / highest;
    real length = sqrt(part * part + below) * (alpha < 0.0 ? 1.0 : -1.0);
    only = highest * length;
    factor = 1.0 / sqrt(length * (length - part));
}
if (lane == 0) {
    RESULT = only;
    if (START < rows) OWN[START] = alpha - only;
}
meet();
for (int e = lane; e < rows; e += LOCAL) {
    real u = e >= START && factor > 0.0 ? OWN[e] / highest * factor : 0.0;
    OWN[e] = u;
    KEPT = u;
}
meet();
"""


def least_beside(dtype: DType) -> float:
    """Smaller elements beside the diagonal are rounding in a matrix whose largest element is 1. The squares of others
    are normal numbers."""
    return float(np.finfo(dtype.numpy).eps) * 2.0**-33


def reflection(own: str, start: str, *, result: str, kept: str) -> str:
    """The text, in braces: the shared array `own` is replaced from `start` on, and its elements `e` are also stored as
    `kept`. `LEAST` is left to be filled in."""
    text = _REFLECTION.strip().replace("OWN", own).replace("START", start)
    return "{\n" + text.replace("RESULT", result).replace("KEPT", kept) + "\n}"
