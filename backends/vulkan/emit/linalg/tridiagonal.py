"""Symmetric matrices made tridiagonal by reflections, one subgroup per matrix (Golub and Van Loan, 8.3.1).

Every reflection u changes the matrix behind it by u·wᵀ + w·uᵀ. That is done while the matrix is multiplied by the next
u, so that each element is read and written once per reflection. Lanes own columns.
"""

from __future__ import annotations

from lavax.backends.vulkan.emit.linalg.matrices import MatrixRoutine
from lavax.backends.vulkan.emit.linalg.owned_columns import extent_of, load_columns, subtract
from lavax.backends.vulkan.emit.linalg.reflection import least_beside, reflection
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.kernel import Kernel

_SHARED = """
shared real before_u[SIDE];
shared real before_w[SIDE];
shared real own_u[SIDE];
shared real products[SIDE];
"""
# The next column, which is the next row too, is changed first: the reflection is found from it.
_REFLECT = """
for (int e = lane; e < rows; e += LOCAL) {
    before_u[e] = 0.0;
    before_w[e] = 0.0;
    own_u[e] = 0.0;
}
meet();
for (int k = 0; k < rows; ++k) {
    real left_u = before_u[k], left_w = before_w[k];
    for (int c = k / LOCAL * LOCAL + lane; c < rows; c += LOCAL) {
        real changed = own[c / LOCAL * EXTENT + k] - (left_u * before_w[c] + left_w * before_u[c]);
        own_u[c] = c > k ? changed : 0.0;
        if (c == k) x.data[k] = changed;
    }
    meet();
    REFLECTION
    SUBTRACT
    real half_product = 0.0;
    for (int c = k + 1 + lane; c < rows; c += LOCAL) half_product += own_u[c] * products[c];
    half_product = total(half_product) / 2.0;
    for (int c = k + 1 + lane; c < rows; c += LOCAL) {
        before_u[c] = own_u[c];
        before_w[c] = products[c] - half_product * own_u[c];
    }
    meet();
}
"""


def emit_tridiagonal(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of tridiagonal."""
    routine = MatrixRoutine(kernel, profile, lifted, in_subgroup=True)
    routine.starts("reflections")
    routine.declare(_SHARED.replace("SIDE", str(routine.rows)))
    load_columns(routine, symmetric=True)
    kept = "x.data[reflections + k * rows + e]"
    found = reflection("own_u", "(k + 1)", result="x.data[rows + k]", kept=kept)
    sides, after, unroll = ("before_u", "before_w"), "(k + 1)", routine.body.uses.unroll
    walk = subtract(
        sides, sides[::-1], multiplied="own_u", sums="products", start=after, begin=after, unroll=unroll
    )
    text = _REFLECT.replace("REFLECTION", found).replace("SUBTRACT", walk)
    text = text.replace("EXTENT", str(extent_of(routine.rows, routine.routine.local)))
    routine.write(text.replace("LEAST", routine.number(least_beside(routine.dtype))))
    return routine.close()
