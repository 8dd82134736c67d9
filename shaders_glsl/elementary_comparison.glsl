#version 460
// Classification and selection in float32. NaN is recognized by its bits, because a driver may assume that there is
// none.

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
// The larger of both, y where they are equal; NaN where either is NaN: no comparison holds for it, so x is kept if it is
// one. The test for NaN is none where y is a literal.
float lx_maximum(float x, float y) {
    precise float larger = mix(x, y, y >= x);
    return mix(larger, y, (floatBitsToUint(y) & 0x7fffffffu) > 0x7f800000u);
}

//! function lx_minimum
// The smaller of both; NaN where either is NaN: see lx_maximum.
float lx_minimum(float x, float y) {
    precise float smaller = mix(x, y, y <= x);
    return mix(smaller, y, (floatBitsToUint(y) & 0x7fffffffu) > 0x7f800000u);
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
