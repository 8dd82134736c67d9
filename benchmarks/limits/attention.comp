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
#ifndef PAIRED  // four floats as two loads of 64 bits
#define PAIRED 1
#endif
#define VECTORS (SIZE / 4)
#define PARTS (SIZE / 32)
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
    uint64_t q = table.address[0], k = table.address[1], v = table.address[2];
    uint lane = gl_LocalInvocationID.x, blocks = POSITIONS / ROWS;
    uint block = gl_WorkGroupID.x % blocks, head = gl_WorkGroupID.x / blocks % HEADS;
    uint batch = gl_WorkGroupID.x / (blocks * HEADS);
    vec4 query[ROWS][VECTORS], found[ROWS][PARTS];
    float largest[ROWS], sums[ROWS];
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
        uint own = place(batch, block * ROWS + r, head);
        [[unroll]] for (int d = 0; d < VECTORS; ++d) query[r][d] = load(q, own + d) * inversesqrt(float(SIZE));
        [[unroll]] for (int part = 0; part < PARTS; ++part) found[r][part] = vec4(0);
        largest[r] = -1.7e38;
        sums[r] = 0.0;
    }
    for (uint first = 0; first < POSITIONS; first += 8) {
        uint key = place(batch, first + lane, head);
        vec4 products[ROWS];
        [[unroll]] for (int r = 0; r < ROWS; ++r) products[r] = vec4(0);
        [[unroll]] for (int d = 0; d < VECTORS; ++d) {
            vec4 part = load(k, key + d);
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
                vec4 numbers = load(v, value + 8 * part);
                [[unroll]] for (int r = 0; r < ROWS; ++r)
                    found[r][part] += subgroupBroadcast(weights[r], other) * numbers;
            }
        }
    }
    Floats result = Floats(table.address[3]);
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
        float factor = 1.0 / sum_of_lanes(sums[r]);
        uint own = place(batch, block * ROWS + r, head) + lane;
        [[unroll]] for (int part = 0; part < PARTS; ++part) result.data[own + 8 * part] = found[r][part] * factor;
    }
}
