// The layer norm of rows: a subgroup of eight has a row in its registers, so memory is read once.
#version 460
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#ifndef WIDTH
#define WIDTH 768
#endif
#define VECTORS (WIDTH / 32)
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
layout(set = 0, binding = 0) uniform usamplerBuffer vectors0;
layout(set = 0, binding = 1) uniform usamplerBuffer vectors1;
layout(set = 0, binding = 2) uniform usamplerBuffer vectors2;
layout(set = 0, binding = 3, scalar) writeonly buffer Stores3 { uvec4 data[]; } stores3;

vec4 load(usamplerBuffer array, uint i) { return uintBitsToFloat(texelFetch(array, int(i))); }

float of_row(vec4 parts) {
    float sum = parts.x + parts.y + parts.z + parts.w;
    sum += subgroupShuffleXor(sum, 1);
    sum += subgroupShuffleXor(sum, 2);
    return sum + subgroupShuffleXor(sum, 4);
}

void main() {
    uint x = uint(table.address[4]), scale = uint(table.address[5]), shift = uint(table.address[6]);
    uint result = uint(table.address[7]);
    uint lane = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * (WIDTH / 4) + lane;
    vec4 row[VECTORS];
    vec4 sums = vec4(0);
    [[unroll]] for (int n = 0; n < VECTORS; ++n) {
        row[n] = load(vectors0, x + first + 8 * n);
        sums += row[n];
    }
    float mean = of_row(sums) / WIDTH;
    vec4 squares = vec4(0);
    [[unroll]] for (int n = 0; n < VECTORS; ++n) {
        row[n] -= mean;
        squares += row[n] * row[n];
    }
    float factor = 1.0 / sqrt(of_row(squares) / WIDTH + 1e-5);
    [[unroll]] for (int n = 0; n < VECTORS; ++n) {
        vec4 scaled = row[n] * factor * load(vectors1, scale + lane + 8 * n);
        stores3.data[result + first + 8 * n] = floatBitsToUint(scaled + load(vectors2, shift + lane + 8 * n));
    }
}
