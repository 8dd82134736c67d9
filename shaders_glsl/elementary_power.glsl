#version 460
// Power, division and arithmetic with zeros in float32.

//! function lx_divide
// x / y. Vulkan bounds the builtin (2.5 units) for 2^-126 <= |y| <= 2^126 only; other divisors are brought into that
// range, which changes no quotient that is neither 0 nor infinite.
float lx_divide(float x, float y) {
    float magnitude = abs(y);
    float scale = mix(mix(1.0, 16777216.0, magnitude < 1e-36), 5.9604645e-08, magnitude > 1.6615350e+35);
    precise float quotient = (x * scale) / (y * scale);
    return quotient;
}

//! function lx_add_zero
// x + 0.0: x, but 0.0 for -0.0.
float lx_add_zero(float x) {
    uint bits = floatBitsToUint(x);
    return uintBitsToFloat(mix(bits, 0u, bits == 0x80000000u));
}

//! function lx_multiply_by_zero
// x zero, for a zero of either sign.
float lx_multiply_by_zero(float x, float zero) {
    uint bits = floatBitsToUint(x);
    uint sign = (bits ^ floatBitsToUint(zero)) & 0x80000000u;
    return uintBitsToFloat(mix(sign, 0x7fc00000u, (bits & 0x7fffffffu) >= 0x7f800000u));
}

//! function lx_divide_by_zero
// x / zero, for a zero of either sign.
float lx_divide_by_zero(float x, float zero) {
    uint bits = floatBitsToUint(x);
    uint sign = (bits ^ floatBitsToUint(zero)) & 0x80000000u;
    bool undefined = x == 0.0 || (bits & 0x7fffffffu) > 0x7f800000u;
    return uintBitsToFloat(mix(0x7f800000u | sign, 0x7fc00000u, undefined));
}

//! function lx_divide_zero
// zero / y, for a zero of either sign.
float lx_divide_zero(float zero, float y) {
    uint bits = floatBitsToUint(y);
    uint sign = (bits ^ floatBitsToUint(zero)) & 0x80000000u;
    bool undefined = y == 0.0 || (bits & 0x7fffffffu) > 0x7f800000u;
    return uintBitsToFloat(mix(sign, 0x7fc00000u, undefined));
}

//! function lx_log2_parts
// log2(a) = high + low for positive finite normal a, good to about 2^-31 relative: with s = (m - 1) / (m + 1) the
// series 2/ln(2) (s + s^3/3 + ...) needs only its first product in two parts. Products of 12-bit heads are exact
// (Dekker 1971), so that no fused fma is needed.
float lx_log2_parts(float a, out float low) {
    int shifted = floatBitsToInt(a) - 0x3f3504f3;
    precise float k = float(shifted >> 23);
    precise float m = intBitsToFloat((shifted & 0x007fffff) + 0x3f3504f3);
    precise float f = m - 1.0;
    precise float d = m + 1.0;
    precise float d_rest = m - (d - 1.0);
    precise float d_head = uintBitsToFloat(floatBitsToUint(d) & 0xfffff000u);
    precise float d_tail = (d - d_head) + d_rest;
    precise float inverse = 1.0 / d;
    precise float s_head = uintBitsToFloat(floatBitsToUint(f * inverse) & 0xfffff000u);
    precise float s_tail = ((f - s_head * d_head) - s_head * d_tail) * inverse;
    precise float s = s_head + s_tail;
    float z = s * s;
    float q = fma(0.33660525, z, 0.41192192);
    q = fma(q, z, 0.5770789);
    q = fma(q, z, 0.9617967);
    precise float product = s_head * 2.8857422;
    precise float rest = (s_tail * 2.88539 - s_head * 0.0003521057) + s * (z * q);
    precise float sum = product + rest;
    precise float high = k + sum;
    precise float remainder = (sum - (high - k)) + (rest - (sum - product));
    low = remainder;
    return high;
}

//! function lx_pow needs lx_log2_parts
// x^y with NumPy's (IEEE 754 pow's) special values.
float lx_pow(float x, float y) {
    uint x_bits = floatBitsToUint(x) & 0x7fffffffu;
    uint y_bits = floatBitsToUint(y) & 0x7fffffffu;
    // With a denormal exponent the power is what it is with the smallest normal one, which no device takes for zero.
    y = mix(y, uintBitsToFloat(floatBitsToUint(y) & 0x80000000u | 0x00800000u), y_bits - 1u < 0x007fffffu);
    // A denormal base is read as an integer: a 2^-149.
    bool tiny = x_bits < 0x00800000u;
    precise float low;
    precise float high = lx_log2_parts(mix(uintBitsToFloat(x_bits), float(int(x_bits)), tiny), low);
    precise float shifted = high - 149.0;
    low = mix(low, low + (high - (shifted + 149.0)), tiny);
    high = mix(high, shifted, tiny);
    high = mix(mix(high, uintBitsToFloat(x_bits), x_bits == 0x7f800000u), uintBitsToFloat(0xff800000u), x_bits == 0u);

    // y log2|x| = n + r.
    precise float product = y * high;
    precise float y_head = uintBitsToFloat(floatBitsToUint(y) & 0xfffff000u);
    precise float high_head = uintBitsToFloat(floatBitsToUint(high) & 0xfffff000u);
    precise float heads = y_head * high_head;
    precise float tails = (y - y_head) * high_head + y * ((high - high_head) + low);
    precise float n = roundEven(product);
    precise float r = (heads - n) + tails;
    float q = fma(0.00015329264, r, 0.0013390969);
    q = fma(q, r, 0.009618499);
    q = fma(q, r, 0.055503596);
    q = fma(q, r, 0.24022648);
    q = fma(q, r, 0.6931472);
    precise float p = fma(q, r, 1.0);
    int exponent = int(clamp(n, -200.0, 200.0));
    int half_exponent = exponent >> 1;
    precise float result = (p * intBitsToFloat((half_exponent + 127) << 23))
        * intBitsToFloat((exponent - half_exponent + 127) << 23);
    result = mix(mix(result, 0.0, product < -152.0), uintBitsToFloat(0x7f800000u), product > 129.0);

    // Every float from 2^24 up is even; below, the last bit of the whole part tells.
    bool y_large = y_bits >= 0x4b800000u;
    int y_whole = mix(int(y), 0, y_large);
    bool y_small_integer = float(y_whole) == y;
    bool y_integer = y_large || y_small_integer;
    uint sign = floatBitsToUint(x) & mix(0u, uint(y_whole) << 31, y_integer);
    result = uintBitsToFloat(floatBitsToUint(result) | sign);
    bool root_of_negative = floatBitsToUint(x) - 0x80000001u < 0x7f7fffffu;
    bool no_number = max(x_bits, y_bits) > 0x7f800000u;
    bool undefined = root_of_negative && !y_integer || no_number;
    result = mix(result, uintBitsToFloat(0x7fc00000u), undefined);
    // 1^y and x^0 are 1 even for NaN; (-1)^inf is 1, too.
    result = mix(result, 1.0, x_bits == 0x3f800000u && y_bits == 0x7f800000u);
    return mix(result, 1.0, floatBitsToUint(x) == 0x3f800000u || y_bits == 0u);
}
//! end

void main() {}
