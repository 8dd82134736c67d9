#version 460
// float16 and bfloat16 by their bits, rounded to the nearest even, so that devices need not support them.

//! function lx_f16_from_bits
// The number whose bits in float16 are the lowest of h.
float lx_f16_from_bits(uint h) {
    uint magnitude = h & 0x7fffu, sign = (h & 0x8000u) << 16;
    uint normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
    uint subnormal = floatBitsToUint(float(magnitude) * 5.9604644775390625e-8);
    return uintBitsToFloat(sign | (magnitude < 0x400u ? subnormal : normal));
}
//! function lx_round_to_f16
// The nearest number that float16 holds. Below its normal numbers their distance is 2^-24, as between 0.5 and 1 here.
float lx_round_to_f16(float x) {
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
    uint normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u)) & 0xffffe000u;
    precise float lifted = abs(x) + 0.75;
    precise float subnormal = lifted - 0.75;
    uint finite = magnitude < 0x38800000u ? floatBitsToUint(subnormal) : normal;
    uint beyond = magnitude > 0x7f800000u ? magnitude | 0x400000u : 0x7f800000u;
    return uintBitsToFloat((bits & 0x80000000u) | (magnitude >= 0x477ff000u ? beyond : finite));
}
//! function lx_f16_held_to_bits
// The bits in float16 of a number that it holds exactly: nothing is rounded.
uint lx_f16_held_to_bits(float x) {
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
    uint normal = (magnitude >> 13) - 0x1c000u, beyond = 0x7c00u | ((magnitude >> 13) & 0x3ffu);
    uint number = magnitude < 0x38800000u ? uint(abs(x) * 16777216.0) : normal;
    return ((bits >> 16) & 0x8000u) | (magnitude >= 0x7f800000u ? beyond : number);
}
//! function lx_f16_to_bits needs lx_round_to_f16, lx_f16_held_to_bits
// The bits of x in float16.
uint lx_f16_to_bits(float x) { return lx_f16_held_to_bits(lx_round_to_f16(x)); }
//! function lx_bf16_to_bits
// The bits of x in bfloat16: the upper half of those in float32.
uint lx_bf16_to_bits(float x) {
    uint bits = floatBitsToUint(x);
    uint nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : nearest;
}
//! function lx_bf16_held_to_bits
// The bits in bfloat16 of a number that it holds exactly: nothing is rounded.
uint lx_bf16_held_to_bits(float x) { return floatBitsToUint(x) >> 16; }
//! function lx_bf16_from_bits
float lx_bf16_from_bits(uint h) { return uintBitsToFloat(h << 16); }
//! function lx_round_to_bf16 needs lx_bf16_to_bits, lx_bf16_from_bits
float lx_round_to_bf16(float x) { return lx_bf16_from_bits(lx_bf16_to_bits(x)); }
//! function lx_round_to_odd_64
// x in float32, the last bit set where that is not exact: rounding it on to fewer bits rounds x once.
float lx_round_to_odd_64(double x) {
    float nearest = float(x);
    double back = double(nearest);
    uint bits = floatBitsToUint(nearest) - uint(abs(back) > abs(x));
    bool exact = back == x || (floatBitsToUint(nearest) & 0x7fffffffu) > 0x7f800000u;
    return exact ? nearest : uintBitsToFloat(bits | 1u);
}
//! end

void main() {}
