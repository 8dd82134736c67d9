// tanh((x * 0.5 + y) * x - y * y) + (x - y) * 3, four neighbours a load.
#version 460
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#ifndef SIZE
#define SIZE 1048576
#endif
#ifndef VECTORS  // of four, each invocation
#define VECTORS 1
#endif
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
layout(set = 0, binding = 0) uniform usamplerBuffer vectors0;
layout(set = 0, binding = 1) uniform usamplerBuffer vectors1;
layout(set = 0, binding = 2, scalar) writeonly buffer Stores2 { uvec4 data[]; } stores2;

vec4 load(usamplerBuffer array, uint i) { return uintBitsToFloat(texelFetch(array, int(i))); }
void main() {
    uint x = uint(table.address[3]), y = uint(table.address[4]), result = uint(table.address[5]);
    for (uint n = 0; n < VECTORS; ++n) {
        uint i = (gl_WorkGroupID.x * VECTORS + n) * 8u + gl_LocalInvocationID.x;
        if (i >= SIZE / 4) return;
        vec4 a = load(vectors0, x + i), b = load(vectors1, y + i);
        stores2.data[result + i] = floatBitsToUint(tanh((a * 0.5 + b) * a - b * b) + (a - b) * 3.0);
    }
}
