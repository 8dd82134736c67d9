"""Small shaders written by hand, for tests of what runs them."""
from __future__ import annotations

from lavax.backends.vulkan.plan.plan import Dispatch, Shader

HEADER = """#version 460
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float value[]; };
layout(push_constant, scalar) uniform Push { uint64_t table; uint words[30]; };
#define SLOT(i) Floats(Table(table).address[words[i]])
"""

# slots: source, target; words: count
ADD_ONE = HEADER + """
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < words[2]) SLOT(1).value[i] = SLOT(0).value[i] + 1.0;
}
"""

# slots: left, right, target; words: count
ADD = HEADER + """
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < words[3]) SLOT(2).value[i] = SLOT(0).value[i] + SLOT(1).value[i];
}
"""

# slots: source, target; words: count. Constants: factor (a signed integer), addend.
SCALE = HEADER + """
layout(constant_id = 0) const int factor = 1;
layout(constant_id = 1) const uint addend = 0;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < words[2]) SLOT(1).value[i] = SLOT(0).value[i] * float(factor) + float(addend);
}
"""

# slots: source, target; words: count, rounds. Takes long for many rounds.
SLOW = HEADER + """
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= words[2]) return;
    float x = SLOT(0).value[i];
    for (uint round = 0; round < words[3]; ++round) x = x * 0.5 + 1.0;
    SLOT(1).value[i] = x;
}
"""


def dispatch(
    source: str,
    slots: tuple[int, ...],
    count: int,
    *,
    words: tuple[int, ...] = (),
    barrier: bool = False,
    specialization: tuple[int, ...] = (),
    subgroup_size: int | None = None,
) -> Dispatch:
    """A dispatch of one of the shaders above over `count` elements."""
    shader = Shader(source, specialization, subgroup_size)
    return Dispatch(shader, slots, (count, *words), (-(-count // 8), 1, 1), barrier, "shader")
