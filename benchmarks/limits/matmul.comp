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
#ifndef PAIRED  // four floats as two loads of 64 bits
#define PAIRED 1
#endif
#define ACROSS (N / (32 * COLUMNS))
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Floats { vec4 data[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Pairs { u64vec2 data[]; };

vec4 load(uint64_t address, uint i) {
#if PAIRED
    u64vec2 pairs = Pairs(address).data[i];
    return vec4(uintBitsToFloat(unpackUint2x32(pairs.x)), uintBitsToFloat(unpackUint2x32(pairs.y)));
#else
    return Floats(address).data[i];
#endif
}

void main() {
    uint64_t a = table.address[0], b = table.address[1];
    uint lane = gl_LocalInvocationID.x;
    uint row = gl_WorkGroupID.x / ACROSS * ROWS;
    uint column = (gl_WorkGroupID.x % ACROSS) * (8 * COLUMNS) + lane;  // in vectors of four
    vec4 sums[ROWS][COLUMNS];
    [[unroll]] for (int r = 0; r < ROWS; ++r)
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) sums[r][c] = vec4(0);
    for (uint k = 0; k < K; k += 4) {
        vec4 left[ROWS / 8];
        [[unroll]] for (int r = 0; r < ROWS / 8; ++r) left[r] = load(a, ((row + 8 * r + lane) * K + k) / 4);
        vec4 right[4][COLUMNS];
        [[unroll]] for (int step = 0; step < 4; ++step)
            [[unroll]] for (int c = 0; c < COLUMNS; ++c)
                right[step][c] = load(b, (k + step) * (N / 4) + column + 8 * c);
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
    Floats result = Floats(table.address[2]);
    [[unroll]] for (int r = 0; r < ROWS; ++r)
        [[unroll]] for (int c = 0; c < COLUMNS; ++c)
            result.data[(row + r) * (N / 4) + column + 8 * c] = sums[r][c];
}
