"""Householder's reflections, and their product; each invocation owns columns (Golub and Van Loan, 5.2).

Signs are LAPACK's: a column that is zero below the diagonal is left as it is, any other gets a diagonal of the sign
opposite to what was there. A column is zero there as well if the squares of what it has would not be normal numbers,
which some devices take for zero: a vector is a reflection in all that is computed of it, or in nothing.
"""

from __future__ import annotations

from re import sub

import numpy as np

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.reflected_panel import emit_panel, suits_panel
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.types import DType
from lavax.passes.kernels.kernel import Kernel

# Vectors are stored below the diagonal, each with a one on it that is not stored; `kept` is the number of columns of
# their matrix. Lengths are those of the column divided by its largest element, so that squares do not overflow.
_REFLECT_ONE = """
    meet();
    real highest = 0.0, tau = 0.0;
    for (int r = k + lane; r < rows; r += LOCAL) highest = max(highest, abs(x.data[r * kept + k]));
    highest = largest(highest);
    real below = 0.0;
    for (int r = k + 1 + lane; r < rows; r += LOCAL) {
        real part = x.data[r * kept + k] / (highest > 0.0 ? highest : 1.0);
        below += part * part;
    }
    below = total(below);
    if (below <= LEAST) {
        for (int r = k + 1 + lane; r < rows; r += LOCAL) x.data[r * kept + k] = 0.0;
    } else {
        real alpha = x.data[k * kept + k];
        real part = alpha / highest;
        real beta = highest * sqrt(part * part + below) * (alpha < 0.0 ? 1.0 : -1.0);
        tau = (beta - alpha) / beta;
        for (int r = k + 1 + lane; r < rows; r += LOCAL) x.data[r * kept + k] /= alpha - beta;
        meet();
        if (lane == 0) x.data[k * kept + k] = beta;
        for (int c = k + 1 + lane; c < last; c += LOCAL) {
            real product = x.data[k * kept + c];
            for (int r = k + 1; r < rows; ++r) product += x.data[r * kept + k] * x.data[r * kept + c];
            product *= tau;
            x.data[k * kept + c] -= product;
            for (int r = k + 1; r < rows; ++r) x.data[r * kept + c] -= product * x.data[r * kept + k];
        }
    }
"""
_REFLECT = """
for (int k = 0, last = columns; k < columns; ++k) {
    REFLECT_ONE
}
"""
# Four reflections, of the columns a, b, c and d, are found before the columns behind them are reflected four times at
# once: `taus` are their factors and `ab`, …, `cd` the products of their vectors, of which `ba` is element b of vector
# a. Each invocation takes two columns at a time.
_PRODUCTS = """
    int a = first * kept, b = a + kept, c = b + kept, d = c + kept;
    real ba = x.data[b + first], ca = x.data[c + first], cb = x.data[c + first + 1];
    real da = x.data[d + first], db = x.data[d + first + 1], dc = x.data[d + first + 2];
    real ab = 0.0, ac = 0.0, ad = 0.0, bc = 0.0, bd = 0.0, cd = 0.0;
    for (int r = end + lane; r < rows; r += LOCAL) {
        real4 v = vectors(r * kept + first);
        ab += v.x * v.y;
        ac += v.x * v.z;
        ad += v.x * v.w;
        bc += v.y * v.z;
        bd += v.y * v.w;
        cd += v.z * v.w;
    }
    ab = total(ab) + ba + ca * cb + da * db;
    ac = total(ac) + ca + da * dc;
    ad = total(ad) + da;
    bc = total(bc) + cb + db * dc;
    bd = total(bd) + db;
    cd = total(cd) + dc;
"""
_EACH_PAIR = """
    for (int one = end + lane; one < COLUMNS; one += 2 * LOCAL) {
        bool both = one + LOCAL < COLUMNS;
        int two = both ? one + LOCAL : one;
        real4 p = real4(0.0), q = real4(0.0);
        for (int r = end; r < rows; ++r) {
            real4 v = vectors(r * kept + first);
            p += v * x.data[r * kept + one];
            q += v * x.data[r * kept + two];
        }
        SHARES
        for (int r = end; r < rows; ++r) {
            real4 v = vectors(r * kept + first);
            x.data[r * kept + one] -= dot(v, p);
            if (both) x.data[r * kept + two] -= dot(v, q);
        }
    }
"""
_REFLECTED_SHARE = """
real a1 = x.data[a + one], b1 = x.data[b + one], c1 = x.data[c + one], d1 = x.data[d + one];
p += real4(a1 + ba * b1 + ca * c1 + da * d1, b1 + cb * c1 + db * d1, c1 + dc * d1, d1);
p.x *= taus.x;
p.y = taus.y * (p.y - ab * p.x);
p.z = taus.z * (p.z - ac * p.x - bc * p.y);
p.w = taus.w * (p.w - ad * p.x - bd * p.y - cd * p.z);
x.data[a + one] = a1 - p.x;
x.data[b + one] = b1 - (ba * p.x + p.y);
x.data[c + one] = c1 - (ca * p.x + cb * p.y + p.z);
x.data[d + one] = d1 - (da * p.x + db * p.y + dc * p.z + p.w);
"""
_REFLECT_BY_PANELS = """
for (int first = 0; first < columns; first += 4) {
    int end = min(first + 4, columns), last = end;
    real4 taus = real4(0.0);
    for (int k = first; k < end; ++k) {
        REFLECT_ONE
        taus[k - first] = tau;
    }
    if (end == columns) break;
    meet();
    PRODUCTS
    EACH_PAIR
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
_TRIANGLE = """
meet();
for (int e = lane; e < kept * columns; e += LOCAL)
    x.data[r_begin + e] = e % columns >= e / columns ? x.data[e / columns * kept + e % columns] : 0.0;
"""
_MULTIPLY_ONE = """
    meet();
    real below = 0.0;
    for (int r = k + 1 + lane; r < rows; r += LOCAL) below += x.data[r * kept + k] * x.data[r * kept + k];
    below = total(below);
    real tau = below == 0.0 ? 0.0 : 2.0 / (1.0 + below);
    for (int c = k + 1 + lane; c < last; c += LOCAL) {
        real product = 0.0;
        for (int r = k + 1; r < rows; ++r) product += x.data[r * kept + k] * x.data[r * kept + c];
        product *= tau;
        x.data[k * kept + c] = -product;
        for (int r = k + 1; r < rows; ++r) x.data[r * kept + c] -= product * x.data[r * kept + k];
    }
    meet();
    for (int r = lane; r < rows; r += LOCAL)
        x.data[r * kept + k] = r < k ? 0.0 : (r == k ? 1.0 - tau : -tau * x.data[r * kept + k]);
"""
_MULTIPLY = """
for (int k = columns - 1, last = kept; k >= 0; --k) {
    MULTIPLY_ONE
}
"""
# The last reflection comes first, and the rows of the four are zero before.
_MULTIPLIED_SHARE = """
p.w *= taus.w;
p.z = taus.z * (p.z - cd * p.w);
p.y = taus.y * (p.y - bc * p.z - bd * p.w);
p.x = taus.x * (p.x - ab * p.y - ac * p.z - ad * p.w);
x.data[a + one] = -p.x;
x.data[b + one] = -(ba * p.x + p.y);
x.data[c + one] = -(ca * p.x + cb * p.y + p.z);
x.data[d + one] = -(da * p.x + db * p.y + dc * p.z + p.w);
"""
# A panel of fewer than four, which is the last one, takes all columns with it, reflection by reflection.
_MULTIPLY_BY_PANELS = """
for (int first = (columns - 1) / 4 * 4; first >= 0; first -= 4) {
    int end = min(first + 4, columns), last = end - first == 4 ? end : kept;
    meet();
    if (last < kept) {
        PRODUCTS
        real4 squares = real4(0.0);
        for (int r = end + lane; r < rows; r += LOCAL) {
            real4 v = vectors(r * kept + first);
            squares += v * v;
        }
        squares = real4(total(squares.x), total(squares.y), total(squares.z), total(squares.w));
        squares += real4(ba * ba + ca * ca + da * da, cb * cb + db * db, dc * dc, 0.0);
        real4 taus;
        for (int n = 0; n < 4; ++n) taus[n] = squares[n] == 0.0 ? 0.0 : 2.0 / (1.0 + squares[n]);
        EACH_PAIR
    }
    for (int k = end - 1; k >= first; --k) {
        MULTIPLY_ONE
    }
}
"""
_VECTORS = """
#define real4 FOUR
#define vectors(at) real4(x.data[at], x.data[(at) + 1], x.data[(at) + 2], x.data[(at) + 3])
"""


def _second(share: str) -> str:
    """What is done for the first of two columns, done for the second if there is one."""
    renamed = sub(r"\bone\b", "two", sub(r"\b([abcd])1\b", r"\g<1>2", sub(r"\bp\b", "q", share)))
    return sub(r"(?m)^(x\.data.*)$", r"if (both) \1", renamed)


def _pairs(share: str, columns: str) -> str:
    return _EACH_PAIR.replace("SHARES", share + _second(share)).replace("COLUMNS", columns)


def _write_reflections(routine: MatrixRoutine, by_panels: bool) -> None:
    text = _REFLECT_BY_PANELS if by_panels else _REFLECT
    text = text.replace("PRODUCTS", _PRODUCTS).replace("EACH_PAIR", _pairs(_REFLECTED_SHARE, "columns"))
    one = _REFLECT_ONE.replace("LEAST", literal(_least_square(routine.dtype), routine.dtype))
    routine.write(text.replace("REFLECT_ONE", one.strip()))


def _least_square(dtype: DType) -> float:
    """Squares above this, of numbers of at most 1, are normal numbers also when a vector's length divides them."""
    return float(np.finfo(dtype.numpy).tiny) * 2.0**26


def _write_product(routine: MatrixRoutine, by_panels: bool) -> None:
    text = _MULTIPLY_BY_PANELS if by_panels else _MULTIPLY
    text = text.replace("PRODUCTS", _PRODUCTS).replace("EACH_PAIR", _pairs(_MULTIPLIED_SHARE, "kept"))
    routine.write(text.replace("MULTIPLY_ONE", _MULTIPLY_ONE.strip()))


def _open(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> tuple[MatrixRoutine, bool]:
    """The routine, and whether it goes by panels of four columns: on CPU drivers, where loads are dear."""
    routine, by_panels = MatrixRoutine(kernel, profile, lifted), profile.kind == "cpu"
    if by_panels:
        routine.declare(_VECTORS.replace("FOUR", type_name(routine.dtype, 4)))
    return routine, by_panels


def emit_householder(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of householder."""
    (node,) = kernel.graph.outputs
    if suits_panel(node.operands[0].type, profile):
        return emit_panel(kernel, profile, _least_square(node.dtype))
    routine, by_panels = _open(kernel, profile, lifted)
    routine.integer("kept", routine.columns)
    routine.integer("r_begin", routine.rows * routine.columns)
    routine.load("x.data[e]")
    _write_reflections(routine, by_panels)
    routine.write(_VECTORS_AND_TRIANGLE)
    return routine.close()


def emit_qr(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of qr."""
    routine, by_panels = _open(kernel, profile, lifted)
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
    _write_reflections(routine, by_panels)
    routine.write(_TRIANGLE)
    _write_product(routine, by_panels)
    return routine.close()
