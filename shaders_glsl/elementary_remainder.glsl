#version 460
// Exact remainders in float32.

//! function lx_whole_mantissa
// A finite |x| > 0, given by its bits, as m 2^(exponent - 150) with a whole number 2^23 <= m < 2^24.
float lx_whole_mantissa(uint bits, out int exponent) {
    bool denormal = bits < 0x00800000u;
    // The conversion finds a denormal's leading bit.
    int whole = floatBitsToInt(float(int(mix((bits & 0x007fffffu) | 0x00800000u, bits, denormal))));
    int missing = 150 - (whole >> 23);
    exponent = max(int(bits >> 23), 1) - missing;
    return intBitsToFloat(whole + (missing << 23));
}

//! function lx_long_division needs lx_whole_mantissa
// For finite |x| >= |y| > 0, given by their bits: |x| mod |y| = rest 2^(exponent - 150) with whole numbers
// rest < divisor < 2^24, and |y| = divisor 2^(exponent - 150). Twelve bits of quotient a step: products of 12-bit halves
// are exact, so every step is exact on any device. No step is done where not `defined`.
float lx_long_division(uint x_bits, uint y_bits, bool defined, out float divisor, out int exponent) {
    int x_exponent;
    precise float rest = lx_whole_mantissa(x_bits, x_exponent);
    divisor = lx_whole_mantissa(y_bits, exponent);
    precise float divisor_high = uintBitsToFloat(floatBitsToUint(divisor) & 0xfffff000u);
    precise float divisor_low = divisor - divisor_high;
    rest = mix(rest, rest - divisor, rest >= divisor);
    for (int left = mix(0, x_exponent - exponent, defined); left > 0; left -= 12) {
        precise float scaled = rest * intBitsToFloat((127 + min(left, 12)) << 23);
        precise float quotient = trunc(scaled / divisor);
        rest = (scaled - quotient * divisor_high) - quotient * divisor_low;
        rest = mix(rest, rest + divisor, rest < 0.0);
        rest = mix(rest, rest - divisor, rest >= divisor);
    }
    return rest;
}

//! function lx_scale_whole
// whole 2^(exponent - 150), by two factors that are normal numbers.
float lx_scale_whole(float whole, int exponent) {
    int half_exponent = (exponent - 150) >> 1;
    precise float result = (whole * intBitsToFloat((half_exponent + 127) << 23))
        * intBitsToFloat((exponent - 150 - half_exponent + 127) << 23);
    return result;
}

//! function lx_fmod needs lx_long_division, lx_scale_whole
// x - trunc(x / y) y, exact, with the sign of x.
float lx_fmod(float x, float y) {
    uint x_bits = floatBitsToUint(x) & 0x7fffffffu;
    uint y_bits = floatBitsToUint(y) & 0x7fffffffu;
    bool undefined = y_bits - 1u >= 0x7f800000u || x_bits >= 0x7f800000u;
    bool same = x_bits < y_bits || x_bits == 0u;
    float divisor;
    int exponent;
    float rest = lx_long_division(x_bits, y_bits, !(same || undefined), divisor, exponent);
    uint bits = mix(floatBitsToUint(lx_scale_whole(rest, exponent)), x_bits, same);
    return uintBitsToFloat(mix(bits | (floatBitsToUint(x) & 0x80000000u), 0x7fc00000u, undefined));
}

//! function lx_remainder needs lx_long_division, lx_scale_whole, lx_whole_mantissa
// x - floor(x / y) y with the sign of y (Python's %). Where y is added to the rest of a division this is done before
// the rest is scaled, without an error; else x + y is rounded once, for small y 2^64 times as large: x may be denormal.
float lx_remainder(float x, float y) {
    uint x_bits = floatBitsToUint(x) & 0x7fffffffu;
    uint y_bits = floatBitsToUint(y) & 0x7fffffffu;
    uint y_sign = floatBitsToUint(y) & 0x80000000u;
    bool opposite = int(floatBitsToUint(x) ^ floatBitsToUint(y)) < 0;
    bool undefined = y_bits - 1u >= 0x7f800000u || x_bits >= 0x7f800000u;
    bool same = x_bits < y_bits || x_bits == 0u;
    float divisor;
    int exponent;
    float rest = lx_long_division(x_bits, y_bits, !(same || undefined), divisor, exponent);
    precise float moved = mix(rest, divisor - rest, opposite && rest > 0.0);
    uint magnitude = floatBitsToUint(lx_scale_whole(moved, exponent));
    int x_exponent;
    float x_whole = lx_whole_mantissa(x_bits, x_exponent);
    precise float lifted = lx_scale_whole(divisor, exponent + 64) - lx_scale_whole(x_whole, x_exponent + 64);
    precise float sum = mix(abs(x + y), lifted * 5.421011e-20, y_bits < 0x20000000u);
    uint small = mix(x_bits, floatBitsToUint(sum), opposite && x_bits != 0u);
    magnitude = mix(mix(magnitude, small, same), 0x7fc00000u, undefined);
    return uintBitsToFloat(magnitude | y_sign);
}
//! end

void main() {}
