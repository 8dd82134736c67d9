"""Square matrices made bidiagonal by reflections from both sides, one subgroup per matrix (Golub and Van Loan, 5.4.8).

A reflection u from the left subtracts u·zᵀ from the matrix behind it, with z = Aᵀ·u, and v from the right w·vᵀ. Both
are subtracted while z is found for the next u, which a column alone tells. Then v comes from a row, and another walk
finds w. Lanes own columns in the first walk and rows in the second, four at a time. What all of them need is read for
as many rows or columns as there are lanes, and passed on by shuffles.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.reflection import least_beside, reflection
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

_OWNED = 4
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
    for (int r = k + lane; r < rows; r += LOCAL)
        own_u[r] = x.data[right + r * rows + k] - (before_u[r] * of_z + before_w[r] * of_v);
    meet();
    OF_COLUMN
    SUBTRACT
    real of_u = own_u[k];
    for (int c = k + 1 + lane; c < rows; c += LOCAL)
        own_v[c] = x.data[right + k * rows + c] - of_u * own_z[c];
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
_SUBTRACT = """
for (int first = k + 1; first < rows; first += OWNED * LOCAL) {
    OPEN_EACH
    for (int start = k; start < rows; start += LOCAL) {
        bool is_row = start + lane < rows;
        int one = min(start + lane, rows - 1);
        real row_u = is_row ? before_u[one] : 0.0, row_w = is_row ? before_w[one] : 0.0;
        real next_u = is_row ? own_u[one] : 0.0;
        UNROLL for (int n = 0; n < LOCAL; ++n) {
            real u = subgroupShuffle(row_u, uint(n)), w = subgroupShuffle(row_w, uint(n));
            real next = subgroupShuffle(next_u, uint(n));
            int at = right + (start + n) * rows;
            if (start + n < rows) {
                EACH
            }
        }
    }
    CLOSE_EACH
}
meet();
"""
_SUBTRACT_EACH = (
    """
    int c# = min(first + # * LOCAL + lane, rows - 1);
    bool is# = first + # * LOCAL + lane < rows;
    real z# = before_z[c#], v# = before_v[c#], sum# = 0.0;
    """,
    """
    if (is#) {
        real element = x.data[at + c#] - (u * z# + w * v#);
        x.data[at + c#] = element;
        sum# += element * next;
    }
    """,
    "if (is#) own_z[c#] = sum#;",
)
_MULTIPLY = """
for (int first = k + 1; first < rows; first += OWNED * LOCAL) {
    OPEN_EACH
    for (int start = k + 1; start < rows; start += LOCAL) {
        int one = min(start + lane, rows - 1);
        real column_v = start + lane < rows ? own_v[one] : 0.0;
        UNROLL for (int n = 0; n < LOCAL; ++n) {
            real v = subgroupShuffle(column_v, uint(n));
            int c = min(start + n, rows - 1);
            EACH
        }
    }
    CLOSE_EACH
}
meet();
"""
_MULTIPLY_EACH = (
    """
    int r# = min(first + # * LOCAL + lane, rows - 1), at# = right + r# * rows;
    bool is# = first + # * LOCAL + lane < rows;
    real sum# = 0.0;
    """,
    "if (is#) sum# += x.data[at# + c] * v;",
    "if (is#) before_w[r#] = sum# - own_u[r#] * both;",
)


def _walk(text: str, each: tuple[str, str, str], unroll: str) -> str:
    opened, inner, closed = ("\n".join(one.strip().replace("#", str(n)) for n in range(_OWNED)) for one in each)
    text = text.replace("OPEN_EACH", opened).replace("CLOSE_EACH", closed).replace("EACH", inner)
    return text.replace("OWNED", str(_OWNED)).replace("UNROLL ", unroll).strip()


def emit_bidiagonal(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of bidiagonal."""
    routine = MatrixRoutine(kernel, profile, lifted, in_subgroup=True)
    routine.starts("left", "right")
    routine.declare(_SHARED.replace("SIDE", str(routine.rows)))
    routine.load("x.data[right + e]")
    of_column = reflection("own_u", "k", result="x.data[k]", kept="x.data[left + k * rows + e]")
    of_row = reflection("own_v", "(k + 1)", result="x.data[rows + k]", kept="x.data[right + k * rows + e]")
    text = _REFLECT.replace("OF_COLUMN", of_column).replace("OF_ROW", of_row)
    unroll = routine.body.uses.unroll
    text = text.replace("SUBTRACT", _walk(_SUBTRACT, _SUBTRACT_EACH, unroll))
    text = text.replace("MULTIPLY", _walk(_MULTIPLY, _MULTIPLY_EACH, unroll))
    routine.write(text.replace("LEAST", routine.number(least_beside(routine.dtype))))
    return routine.close()
