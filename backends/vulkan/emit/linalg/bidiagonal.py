"""Square matrices made bidiagonal by reflections from both sides, one subgroup per matrix (Golub and Van Loan, 5.4.8).

A reflection u from the left subtracts u·zᵀ from the matrix behind it, with z = Aᵀ·u, and v from the right w·vᵀ. Both
are subtracted while z is found for the next u, which a column alone tells. Then v comes from a row, and another walk
finds w. Lanes own columns; sums over columns are folded by shuffles for as many rows at once as there are lanes.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.owned_columns import each, extent_of, folded, load_columns, subtract, take
from lavax.backends.vulkan.emit.linalg.reflection import least_beside, reflection
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

_SHARED = """
shared real before_u[SIDE];
shared real before_z[SIDE];
shared real before_v[SIDE];
shared real before_w[SIDE];
shared real own_u[SIDE];
shared real own_z[SIDE];
shared real own_v[SIDE];
"""
_REFLECT = """
for (int e = lane; e < rows; e += LOCAL) {
    before_u[e] = 0.0;
    before_z[e] = 0.0;
    before_v[e] = 0.0;
    before_w[e] = 0.0;
}
meet();
for (int k = 0; k < rows; ++k) {
    real of_z = before_z[k], of_v = before_v[k];
    for (int start = k; start < rows; start += LOCAL) {
        int r = start + lane;
        real element = 0.0;
        TAKE
        if (r < rows) own_u[r] = element - (before_u[r] * of_z + before_w[r] * of_v);
    }
    meet();
    OF_COLUMN
    SUBTRACT
    real of_u = own_u[k];
    for (int c = k / LOCAL * LOCAL + lane; c < rows; c += LOCAL)
        if (c > k) own_v[c] = own[c / LOCAL * EXTENT + k] - of_u * own_z[c];
    meet();
    OF_ROW
    real both = 0.0;
    for (int c = k + 1 + lane; c < rows; c += LOCAL) both += own_z[c] * own_v[c];
    both = total(both);
    MULTIPLY
    for (int e = k + 1 + lane; e < rows; e += LOCAL) {
        before_u[e] = own_u[e];
        before_z[e] = own_z[e];
        before_v[e] = own_v[e];
    }
    meet();
}
"""
_MULTIPLY = """
for (int c = k / LOCAL * LOCAL + lane; c < rows; c += LOCAL) factors[c / LOCAL] = own_v[c];
for (int start = k + 1; start < rows; start += LOCAL) {
    OPEN_ROWS
    for (int j = (k + 1) / LOCAL; j * LOCAL < rows; ++j) {
        int at = j * EXTENT + start;
        real v = j * LOCAL + lane < rows ? factors[j] : 0.0;
        EACH_ROW
    }
    FOLD
    int r = start + lane;
    if (r < rows) before_w[r] = sum0 - own_u[r] * both;
}
meet();
"""


def _walks(lanes: int, unroll: str) -> str:
    multiply = _MULTIPLY.strip().replace("OPEN_ROWS", each("real sum# = 0.0;", lanes))
    multiply = multiply.replace("EACH_ROW", each("sum# += own[at + #] * v;", lanes)).replace("FOLD", folded(lanes))
    before = dict(rows=("before_u", "before_w"), columns=("before_z", "before_v"))
    walk = subtract(**before, multiplied="own_u", sums="own_z", start="k", begin="(k + 1)", unroll=unroll)
    text = _REFLECT.replace("SUBTRACT", walk).replace("MULTIPLY", multiply)
    return text.replace("TAKE", take("k", lanes))


def emit_bidiagonal(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of bidiagonal."""
    routine = MatrixRoutine(kernel, profile, lifted, in_subgroup=True)
    lanes = routine.routine.local
    routine.starts("left", "right")
    routine.declare(_SHARED.replace("SIDE", str(routine.rows)))
    load_columns(routine)
    routine.write(f"real factors[{-(-routine.rows // lanes)}];")
    of_column = reflection("own_u", "k", result="x.data[k]", kept="x.data[left + k * rows + e]")
    of_row = reflection("own_v", "(k + 1)", result="x.data[rows + k]", kept="x.data[right + k * rows + e]")
    text = _walks(lanes, routine.body.uses.unroll).replace("OF_COLUMN", of_column).replace("OF_ROW", of_row)
    text = text.replace("EXTENT", str(extent_of(routine.rows, lanes)))
    routine.write(text.replace("LEAST", routine.number(least_beside(routine.dtype))))
    return routine.close()
