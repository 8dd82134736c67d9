// Softmax attention of arrays (batch, positions, heads, size) with a running maximum. A subgroup of eight computes ROWS
// queries. For the scores its lanes stand for keys, and for the result they stand side by side along the values.
#version 460
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#ifndef POSITIONS
#define POSITIONS 512
#define HEADS 4
#define SIZE 64
#endif
#ifndef ROWS
#define ROWS 8
#endif
#define VECTORS (SIZE / 4)
#define PARTS (SIZE / 32)
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
layout(set = 0, binding = 0) uniform usamplerBuffer vectors0;
layout(set = 0, binding = 1) uniform usamplerBuffer vectors1;
layout(set = 0, binding = 2) uniform usamplerBuffer vectors2;
layout(set = 0, binding = 3, scalar) writeonly buffer Stores3 { uvec4 data[]; } stores3;

vec4 load(usamplerBuffer array, uint i) { return uintBitsToFloat(texelFetch(array, int(i))); }

uint place(uint batch, uint position, uint head) {
    return ((batch * POSITIONS + position) * HEADS + head) * VECTORS;
}

float largest_of_lanes(float x) {
    x = max(x, subgroupShuffleXor(x, 1));
    x = max(x, subgroupShuffleXor(x, 2));
    return max(x, subgroupShuffleXor(x, 4));
}

float sum_of_lanes(float x) {
    x += subgroupShuffleXor(x, 1);
    x += subgroupShuffleXor(x, 2);
    return x + subgroupShuffleXor(x, 4);
}

void main() {
    uint q = uint(table.address[4]), k = uint(table.address[5]), v = uint(table.address[6]);
    uint result = uint(table.address[7]);
    uint lane = gl_LocalInvocationID.x, blocks = POSITIONS / ROWS;
    uint block = gl_WorkGroupID.x % blocks, head = gl_WorkGroupID.x / blocks % HEADS;
    uint batch = gl_WorkGroupID.x / (blocks * HEADS);
    vec4 query[ROWS][VECTORS], found[ROWS][PARTS];
    float largest[ROWS], sums[ROWS];
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
        uint own = place(batch, block * ROWS + r, head);
        [[unroll]] for (int d = 0; d < VECTORS; ++d) query[r][d] = load(vectors0, q + own + d) * inversesqrt(float(SIZE));
        [[unroll]] for (int part = 0; part < PARTS; ++part) found[r][part] = vec4(0);
        largest[r] = -1.7e38;
        sums[r] = 0.0;
    }
    for (uint first = 0; first < POSITIONS; first += 8) {
        uint key = place(batch, first + lane, head);
        vec4 products[ROWS];
        [[unroll]] for (int r = 0; r < ROWS; ++r) products[r] = vec4(0);
        [[unroll]] for (int d = 0; d < VECTORS; ++d) {
            vec4 part = load(vectors1, k + key + d);
            [[unroll]] for (int r = 0; r < ROWS; ++r) products[r] += query[r][d] * part;
        }
        float weights[ROWS];
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            float score = products[r].x + products[r].y + products[r].z + products[r].w;
            float most = max(largest[r], largest_of_lanes(score));
            float shrink = exp(largest[r] - most);
            weights[r] = exp(score - most);
            largest[r] = most;
            sums[r] = sums[r] * shrink + weights[r];
            [[unroll]] for (int part = 0; part < PARTS; ++part) found[r][part] *= shrink;
        }
        [[unroll]] for (int other = 0; other < 8; ++other) {
            uint value = place(batch, first + other, head) + lane;
            [[unroll]] for (int part = 0; part < PARTS; ++part) {
                vec4 numbers = load(vectors2, v + value + 8 * part);
                [[unroll]] for (int r = 0; r < ROWS; ++r)
                    found[r][part] += subgroupBroadcast(weights[r], other) * numbers;
            }
        }
    }
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
        float factor = 1.0 / sum_of_lanes(sums[r]);
        uint own = place(batch, block * ROWS + r, head) + lane;
        [[unroll]] for (int part = 0; part < PARTS; ++part)
            stores3.data[result + own + 8 * part] = floatBitsToUint(found[r][part] * factor);
    }
}
