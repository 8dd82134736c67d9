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
#ifndef PAIRED  // four floats as two loads and stores of 64 bits
#define PAIRED 1
#endif
layout(local_size_x = 8) in;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
layout(push_constant, scalar) uniform Arguments { Table table; uint words[30]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Floats { vec4 data[]; };

#if PAIRED
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Pairs { u64vec2 data[]; };

vec4 load(uint64_t address, uint i) {
    u64vec2 pairs = Pairs(address).data[i];
    return vec4(uintBitsToFloat(unpackUint2x32(pairs.x)), uintBitsToFloat(unpackUint2x32(pairs.y)));
}

void store(uint64_t address, uint i, vec4 numbers) {
    uvec4 words = floatBitsToUint(numbers);
    Pairs(address).data[i] = u64vec2(packUint2x32(words.xy), packUint2x32(words.zw));
}
#else
vec4 load(uint64_t address, uint i) { return Floats(address).data[i]; }
void store(uint64_t address, uint i, vec4 numbers) { Floats(address).data[i] = numbers; }
#endif

void main() {
    uint64_t x = table.address[0], y = table.address[1], result = table.address[2];
    for (uint n = 0; n < VECTORS; ++n) {
        uint i = (gl_WorkGroupID.x * VECTORS + n) * 8u + gl_LocalInvocationID.x;
        if (i >= SIZE / 4) return;
        vec4 a = load(x, i), b = load(y, i);
        store(result, i, tanh((a * 0.5 + b) * a - b * b) + (a - b) * 3.0);
    }
}
