// a (M × K) times b (K × N), row by row in memory. The lanes of a subgroup of eight stand side by side: each has
// ROWS rows of COLUMNS vectors of four columns in registers. Each lane loads some of the rows of `a` and hands them on.
#version 460
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
#ifndef M
#define M 512
#define K 512
#define N 512
#endif
#ifndef ROWS  // a multiple of eight
#define ROWS 8
#define COLUMNS 1
#endif
#define ACROSS (N / (32 * COLUMNS))
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
layout(set = 0, binding = 0) uniform usamplerBuffer vectors0;
layout(set = 0, binding = 1) uniform usamplerBuffer vectors1;
layout(set = 0, binding = 2, scalar) writeonly buffer Stores2 { uvec4 data[]; } stores2;

vec4 load(usamplerBuffer array, uint i) { return uintBitsToFloat(texelFetch(array, int(i))); }

void main() {
    uint a = uint(table.address[3]), b = uint(table.address[4]), result = uint(table.address[5]);
    uint lane = gl_LocalInvocationID.x;
    uint row = gl_WorkGroupID.x / ACROSS * ROWS;
    uint column = (gl_WorkGroupID.x % ACROSS) * (8 * COLUMNS) + lane;  // in vectors of four
    vec4 sums[ROWS][COLUMNS];
    [[unroll]] for (int r = 0; r < ROWS; ++r)
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) sums[r][c] = vec4(0);
    for (uint k = 0; k < K; k += 4) {
        vec4 left[ROWS / 8];
        [[unroll]] for (int r = 0; r < ROWS / 8; ++r) left[r] = load(vectors0, a + ((row + 8 * r + lane) * K + k) / 4);
        vec4 right[4][COLUMNS];
        [[unroll]] for (int step = 0; step < 4; ++step)
            [[unroll]] for (int c = 0; c < COLUMNS; ++c)
                right[step][c] = load(vectors1, b + (k + step) * (N / 4) + column + 8 * c);
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            vec4 factors = subgroupBroadcast(left[r / 8], r % 8);
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                sums[r][c] += factors.x * right[0][c];
                sums[r][c] += factors.y * right[1][c];
                sums[r][c] += factors.z * right[2][c];
                sums[r][c] += factors.w * right[3][c];
            }
        }
    }
    [[unroll]] for (int r = 0; r < ROWS; ++r)
        [[unroll]] for (int c = 0; c < COLUMNS; ++c)
            stores2.data[result + (row + r) * (N / 4) + column + 8 * c] = floatBitsToUint(sums[r][c]);
}
