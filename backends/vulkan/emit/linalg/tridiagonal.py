"""Symmetric matrices made tridiagonal by reflections, one subgroup per matrix (Golub and Van Loan, 8.3.1).

Every reflection u changes the matrix behind it by u·wᵀ + w·uᵀ. That is done while the matrix is multiplied by the next
u, so that each element is read and written once per reflection. Lanes own columns, four at a time. What all of them
need of a row is read for as many rows as there are lanes, and passed on by shuffles.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.reflection import least_beside, reflection
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

_COLUMNS = 4
_SHARED = """
shared real before_u[SIDE];
shared real before_w[SIDE];
shared real own_u[SIDE];
shared real products[SIDE];
"""
# The next column, which is the next row too, is changed first: the reflection is found from it.
_REFLECT = """
for (int e = lane; e < SIDE; e += LOCAL) {
    before_u[e] = 0.0;
    before_w[e] = 0.0;
    own_u[e] = 0.0;
}
meet();
for (int k = 0; k < rows; ++k) {
    int row = reflections + k * rows;
    real left_u = before_u[k], left_w = before_w[k];
    for (int c = k + lane; c < rows; c += LOCAL) {
        real changed = x.data[row + c] - (left_u * before_w[c] + left_w * before_u[c]);
        x.data[row + c] = changed;
        own_u[c] = c > k ? changed : 0.0;
        if (c == k) x.data[k] = changed;
    }
    meet();
    REFLECTION
    CHANGE
    real half_product = 0.0;
    for (int c = k + 1 + lane; c < rows; c += LOCAL) half_product += own_u[c] * products[c];
    half_product = total(half_product) / 2.0;
    for (int c = k + lane; c < rows; c += LOCAL) {
        before_u[c] = own_u[c];
        before_w[c] = products[c] - half_product * own_u[c];
    }
    meet();
}
"""
_CHANGE_BLOCK = """
    for (int first = k + 1; first < rows; first += COLUMNS * LOCAL) {
        OPEN_COLUMNS
        for (int start = k + 1; start < rows; start += LOCAL) {
            bool is_row = start + lane < rows;
            int one = min(start + lane, rows - 1);
            real row_u = is_row ? before_u[one] : 0.0, row_w = is_row ? before_w[one] : 0.0;
            real next_u = is_row ? own_u[one] : 0.0;
            int many = min(LOCAL, rows - start);
            for (int n = 0; n < many; ++n) {
                real u = subgroupShuffle(row_u, uint(n)), w = subgroupShuffle(row_w, uint(n));
                real next = subgroupShuffle(next_u, uint(n));
                int at = reflections + (start + n) * rows;
                EACH_COLUMN
            }
        }
        CLOSE_COLUMNS
    }
"""
_OPEN_COLUMN = """
int c# = min(first + # * LOCAL + lane, rows - 1);
bool is# = first + # * LOCAL + lane < rows;
real u# = before_u[c#], w# = before_w[c#], sum# = 0.0;
"""
_EACH_COLUMN = """
if (is#) {
    real element = x.data[at + c#] - (u * w# + w * u#);
    x.data[at + c#] = element;
    sum# += element * next;
}
"""
_CLOSE_COLUMN = "if (is#) products[c#] = sum#;"


def _for_each(text: str) -> str:
    return "\n".join(text.strip().replace("#", str(number)) for number in range(_COLUMNS))


def emit_tridiagonal(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of tridiagonal."""
    routine = MatrixRoutine(kernel, profile, lifted, in_subgroup=True)
    routine.starts("reflections")
    routine.declare(_SHARED.replace("SIDE", str(routine.rows)))
    with routine.body.block("for (int e = lane; e < rows * rows; e += LOCAL)"):
        row = routine.routine.position("r", "max(e / rows, e % rows)", routine.rows)
        column = routine.routine.position("c", "min(e / rows, e % rows)", routine.rows)
        value = routine.at(row, column)
        routine.body.line(f"x.data[reflections + e] = {value};")
    block = _CHANGE_BLOCK.replace("OPEN_COLUMNS", _for_each(_OPEN_COLUMN))
    block = block.replace("EACH_COLUMN", _for_each(_EACH_COLUMN)).replace("CLOSE_COLUMNS", _for_each(_CLOSE_COLUMN))
    found = reflection("own_u", "(k + 1)", result="x.data[rows + k]", kept="x.data[row + e]")
    text = _REFLECT.replace("REFLECTION", found).replace("CHANGE", block.replace("COLUMNS", str(_COLUMNS)))
    least = routine.number(least_beside(routine.dtype))
    routine.write(text.replace("SIDE", str(routine.rows)).replace("LEAST", least))
    return routine.close()
