#version 460
// Classification and selection in float32. NaN is told by bits: a driver may assume that no float is NaN.

//! function lx_isnan
// Is x NaN?
bool lx_isnan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

//! function lx_isinf
// Is x infinite?
bool lx_isinf(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u; }

//! function lx_isfinite
// Is x neither infinite nor NaN?
bool lx_isfinite(float x) { return (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u; }

//! function lx_maximum
// The larger of both; NaN where either is NaN.
float lx_maximum(float x, float y) {
    uint x_bits = floatBitsToUint(x);
    float larger = mix(y, x, x > y);
    larger = mix(larger, y, (floatBitsToUint(y) & 0x7fffffffu) > 0x7f800000u);
    return mix(larger, x, (x_bits & 0x7fffffffu) > 0x7f800000u);
}

//! function lx_minimum
// The smaller of both; NaN where either is NaN.
float lx_minimum(float x, float y) {
    uint x_bits = floatBitsToUint(x);
    float smaller = mix(y, x, x < y);
    smaller = mix(smaller, y, (floatBitsToUint(y) & 0x7fffffffu) > 0x7f800000u);
    return mix(smaller, x, (x_bits & 0x7fffffffu) > 0x7f800000u);
}

//! function lx_sign
// -1, 0 or 1; NaN for NaN.
float lx_sign(float x) {
    uint bits = floatBitsToUint(x);
    uint magnitude = bits & 0x7fffffffu;
    float one = uintBitsToFloat(0x3f800000u | (bits & 0x80000000u));
    float result = mix(one, x, magnitude > 0x7f800000u);
    return mix(result, 0.0, magnitude == 0u);
}
//! end

void main() {}
