// The softmax of rows: a subgroup of eight has a row in its registers, so memory is read once.
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
layout(set = 0, binding = 1, scalar) writeonly buffer Stores1 { uvec4 data[]; } stores1;

vec4 load(usamplerBuffer array, uint i) { return uintBitsToFloat(texelFetch(array, int(i))); }

void main() {
    uint x = uint(table.address[2]), result = uint(table.address[3]);
    uint first = gl_WorkGroupID.x * (WIDTH / 4) + gl_LocalInvocationID.x;
    vec4 row[VECTORS];
    vec4 most = vec4(-3.402823466e38);
    [[unroll]] for (int n = 0; n < VECTORS; ++n) {
        row[n] = load(vectors0, x + first + 8 * n);
        most = max(most, row[n]);
    }
    float largest = max(max(most.x, most.y), max(most.z, most.w));
    largest = max(largest, subgroupShuffleXor(largest, 1));
    largest = max(largest, subgroupShuffleXor(largest, 2));
    largest = max(largest, subgroupShuffleXor(largest, 4));
    vec4 sums = vec4(0);
    [[unroll]] for (int n = 0; n < VECTORS; ++n) {
        row[n] = exp(row[n] - largest);
        sums += row[n];
    }
    float sum = sums.x + sums.y + sums.z + sums.w;
    sum += subgroupShuffleXor(sum, 1);
    sum += subgroupShuffleXor(sum, 2);
    sum += subgroupShuffleXor(sum, 4);
    float factor = 1.0 / sum;
    [[unroll]] for (int n = 0; n < VECTORS; ++n)
        stores1.data[result + first + 8 * n] = floatBitsToUint(row[n] * factor);
}
