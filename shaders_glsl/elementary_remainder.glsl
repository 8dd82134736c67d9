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

//! function lx_fmod needs lx_whole_mantissa
// x - trunc(x / y) y, exact, with the sign of x. Long division with 12 bits of quotient a step: the mantissas are
// whole numbers below 2^24, and products of 12-bit halves are exact, so every step is exact on any device.
float lx_fmod(float x, float y) {
    uint x_bits = floatBitsToUint(x) & 0x7fffffffu;
    uint y_bits = floatBitsToUint(y) & 0x7fffffffu;
    int x_exponent, y_exponent;
    precise float rest = lx_whole_mantissa(x_bits, x_exponent);
    precise float divisor = lx_whole_mantissa(y_bits, y_exponent);
    precise float divisor_high = uintBitsToFloat(floatBitsToUint(divisor) & 0xfffff000u);
    precise float divisor_low = divisor - divisor_high;
    rest = mix(rest, rest - divisor, rest >= divisor);
    bool undefined = y_bits - 1u >= 0x7f800000u || x_bits >= 0x7f800000u;
    bool same = x_bits < y_bits || x_bits == 0u;
    bool done = same || undefined;
    for (int left = mix(x_exponent - y_exponent, 0, done); left > 0; left -= 12) {
        precise float scaled = rest * intBitsToFloat((127 + min(left, 12)) << 23);
        precise float quotient = trunc(scaled / divisor);
        rest = (scaled - quotient * divisor_high) - quotient * divisor_low;
        rest = mix(rest, rest + divisor, rest < 0.0);
        rest = mix(rest, rest - divisor, rest >= divisor);
    }
    // rest 2^(y_exponent - 150), in two factors that are normal numbers.
    int half_exponent = (y_exponent - 150) >> 1;
    precise float result = (rest * intBitsToFloat((half_exponent + 127) << 23))
        * intBitsToFloat((y_exponent - 150 - half_exponent + 127) << 23);
    uint bits = mix(floatBitsToUint(result), x_bits, same);
    return uintBitsToFloat(mix(bits | (floatBitsToUint(x) & 0x80000000u), 0x7fc00000u, undefined));
}

//! function lx_remainder needs lx_fmod
// x - floor(x / y) y with the sign of y (Python's %), rounded once where y is added.
float lx_remainder(float x, float y) {
    precise float rest = lx_fmod(x, y);
    uint magnitude = floatBitsToUint(rest) & 0x7fffffffu;
    uint y_sign = floatBitsToUint(y) & 0x80000000u;
    bool opposite = int(floatBitsToUint(rest) ^ floatBitsToUint(y)) < 0;
    bool number = magnitude - 1u < 0x7f800000u;
    precise float moved = rest + y;
    uint zero_or_rest = mix(floatBitsToUint(rest), y_sign, magnitude == 0u);
    return uintBitsToFloat(mix(zero_or_rest, floatBitsToUint(moved), opposite && number));
}
//! end

void main() {}
