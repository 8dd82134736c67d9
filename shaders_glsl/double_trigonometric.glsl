#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Trigonometric functions and their inverses in float64, over the whole range. Polynomials are our own fits:
// interpolation at Chebyshev's points with 260 bits, coefficients then rounded. Results do not depend on fused fma.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
double lx_product_64(double a, double b, out double rest) { rest = 0.0lf; return a * b; }
double lx_copy_sign_64(double x, double y) { return y < 0.0lf ? -abs(x) : abs(x); }

//! function lx_reduce_angle_64 needs lx_product_64, lx_copy_sign_64
// |x| = quadrant pi/2 + r + rest (modulo 2 pi), |r| <= pi/4, for finite x. In integers (Payne and Hanek, "Radian
// Reduction for Trigonometric Functions", 1983): the mantissa times the 192 bits of 2/pi that matter gives the quadrant
// and 137 bits of fraction, of which at most 61 cancel.
double lx_reduce_angle_64(double x, out uint quadrant, out double rest) {
    // 2/pi behind 64 zero bits, in words of 32.
    const uint bits_of_ratio[39] = uint[39](
        0x00000000u, 0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
        0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
        0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
        0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u);
    uint64_t bits = doubleBitsToUint64(x) & 0x7ffffffffffffffful;
    uint start = uint(clamp(int(bits >> 52) - 1013, 0, 1033));
    uint word = start >> 5, left = start & 31u, right = 31u - left;
    uint chosen[7];
    for (int i = 0; i < 7; ++i) chosen[i] = bits_of_ratio[word + uint(i)];
    uint64_t ratio[6];
    for (int i = 0; i < 6; ++i) ratio[i] = uint64_t((chosen[i] << left) | ((chosen[i + 1] >> 1) >> right));
    uint64_t mantissa = (bits & 0x000ffffffffffffful) | 0x0010000000000000ul;
    uint64_t low_half = mantissa & 0xfffffffful, high_half = mantissa >> 32;
    // The product modulo 4 in units of 2^-190, word by word from the lowest; the two lowest only carry.
    uint64_t carry = (low_half * ratio[5]) >> 32, words[6];
    for (int i = 1; i < 6; ++i) {
        uint64_t first = low_half * ratio[5 - i], second = high_half * ratio[6 - i] + carry;
        uint64_t column = (first & 0xfffffffful) + (second & 0xfffffffful);
        words[i] = column & 0xfffffffful;
        carry = (first >> 32) + (second >> 32) + (column >> 32);
    }
    uint64_t high = (words[5] << 32) | words[4], low = (words[3] << 32) | words[2];
    uint64_t turn = high + 0x2000000000000000ul;
    high -= turn & 0xc000000000000000ul;
    bool negative = (high >> 63) != 0ul;
    high = negative ? ~high : high;
    low = negative ? ~low : low;
    // The upper 53 bits in one double, what is below in another; times (pi/2) 2^-62.
    precise double head = double(int64_t(high & ~0xfful));
    precise double tail = double(int64_t(high & 0xfful)) + double(int64_t(low >> 1)) * 1.0842021724855044e-19lf;
    double missing;
    precise double product = lx_product_64(head, 3.4061215800865545e-19lf, missing);
    precise double lower = missing + (head * 1.3277647201629795e-35lf + tail * 3.4061215800865545e-19lf);
    precise double r = product + lower;
    precise double r_rest = (product - r) + lower;
    double sign = negative ? -1.0lf : 1.0lf;
    bool small = bits < 0x3fe921fb54442d18ul;
    quadrant = small ? 0u : uint(turn >> 62);
    rest = small ? 0.0lf : sign * r_rest;
    return small ? uint64BitsToDouble(bits) : lx_copy_sign_64(r, sign);
}

//! function lx_sin_polynomial_64
// sin(r + rest) for |r| <= pi/4.
double lx_sin_polynomial_64(double r, double rest) {
    double z = r * r;
    double q = fma(-7.586682497157786e-13lf, z, 1.6058531370931902e-10lf);
    q = fma(q, z, -2.505210623088241e-08lf);
    q = fma(q, z, 2.755731921933466e-06lf);
    q = fma(q, z, -0.0001984126984126506lf);
    q = fma(q, z, 0.008333333333333331lf);
    q = fma(q, z, -0.16666666666666666lf);
    precise double result = r + (fma(r * z, q, rest) - 0.5lf * z * rest);
    return result;
}

//! function lx_cos_polynomial_64
// cos(r + rest) for |r| <= pi/4; what rounding takes from 1 - r^2 / 2 is given back.
double lx_cos_polynomial_64(double r, double rest) {
    double z = r * r;
    double q = fma(4.7458637732829623e-14lf, z, -1.1470460749696862e-11lf);
    q = fma(q, z, 2.0876755790210228e-09lf);
    q = fma(q, z, -2.755731922140032e-07lf);
    q = fma(q, z, 2.4801587301584642e-05lf);
    q = fma(q, z, -0.0013888888888888887lf);
    q = fma(q, z, 0.041666666666666664lf);
    precise double half_square = 0.5lf * z;
    precise double head = 1.0lf - half_square;
    precise double result = head + (((1.0lf - head) - half_square) + ((z * z) * q - r * rest));
    return result;
}

//! function lx_finite_or_nan_64
// `value` where x is finite, else NaN.
double lx_finite_or_nan_64(double value, double x) {
    bool finite = (doubleBitsToUint64(x) & 0x7ffffffffffffffful) < 0x7ff0000000000000ul;
    return mix(uint64BitsToDouble(0x7ff8000000000000ul), value, finite);
}

//! function lx_sin_64 needs lx_reduce_angle_64, lx_sin_polynomial_64, lx_cos_polynomial_64, lx_finite_or_nan_64
// Sine of x radians; NaN for infinities.
double lx_sin_64(double x) {
    uint quadrant;
    double rest;
    double r = lx_reduce_angle_64(x, quadrant, rest);
    double value = mix(lx_sin_polynomial_64(r, rest), lx_cos_polynomial_64(r, rest), (quadrant & 1u) != 0u);
    uint64_t flip = ((uint64_t(quadrant) << 62) ^ doubleBitsToUint64(x)) & 0x8000000000000000ul;
    return lx_finite_or_nan_64(uint64BitsToDouble(doubleBitsToUint64(value) ^ flip), x);
}

//! function lx_cos_64 needs lx_reduce_angle_64, lx_sin_polynomial_64, lx_cos_polynomial_64, lx_finite_or_nan_64
// Cosine of x radians; NaN for infinities.
double lx_cos_64(double x) {
    uint quadrant;
    double rest;
    double r = lx_reduce_angle_64(x, quadrant, rest);
    double value = mix(lx_cos_polynomial_64(r, rest), lx_sin_polynomial_64(r, rest), (quadrant & 1u) != 0u);
    uint64_t flip = (uint64_t(quadrant + 1u) << 62) & 0x8000000000000000ul;
    return lx_finite_or_nan_64(uint64BitsToDouble(doubleBitsToUint64(value) ^ flip), x);
}

//! function lx_tan_64 needs lx_reduce_angle_64, lx_sin_polynomial_64, lx_cos_polynomial_64, lx_finite_or_nan_64
// Tangent of x radians, sine by cosine; NaN for infinities. In odd quadrants -cosine by sine.
double lx_tan_64(double x) {
    uint quadrant;
    double rest;
    double r = lx_reduce_angle_64(x, quadrant, rest);
    double sine = lx_sin_polynomial_64(r, rest), cosine = lx_cos_polynomial_64(r, rest);
    bool odd = (quadrant & 1u) != 0u;
    precise double value = mix(sine, -cosine, odd) / mix(cosine, sine, odd);
    uint64_t flip = doubleBitsToUint64(x) & 0x8000000000000000ul;
    return lx_finite_or_nan_64(uint64BitsToDouble(doubleBitsToUint64(value) ^ flip), x);
}

//! function lx_asin_half_64
// asin(sqrt(z)) = head + rest for 0 <= z <= 1/4. The root's head has 26 bits, so that what is subtracted from it or
// from pi/2 is exact; rest takes the root's remainder and the polynomial.
double lx_asin_half_64(double z, out double rest) {
    precise double s = sqrt(z);
    precise double head = uint64BitsToDouble(doubleBitsToUint64(s) & 0xfffffffff8000000ul);
    precise double tail = (z - head * head) / (s + head);
    double q = fma(0.02961201126495512lf, z, -0.01924167174674304lf);
    q = fma(q, z, 0.019554513336123378lf);
    q = fma(q, z, 0.0030448799094556773lf);
    q = fma(q, z, 0.009319560794767446lf);
    q = fma(q, z, 0.009621842970100282lf);
    q = fma(q, z, 0.011566459612121669lf);
    q = fma(q, z, 0.01396378001220357lf);
    q = fma(q, z, 0.017352816540325496lf);
    q = fma(q, z, 0.02237215744350722lf);
    q = fma(q, z, 0.03038194447553234lf);
    q = fma(q, z, 0.044642857142551895lf);
    q = fma(q, z, 0.07500000000000118lf);
    q = fma(q, z, 0.16666666666666666lf);
    precise double sum = fma(s * z, q, tail);
    rest = mix(0.0lf, sum, z > 0.0lf);
    return mix(0.0lf, head, z > 0.0lf);
}

//! function lx_asin_64 needs lx_asin_half_64, lx_copy_sign_64
// x + x^3 P(x^2) up to 1/2, above pi/2 - 2 asin(sqrt((1 - |x|) / 2)).
double lx_asin_64(double x) {
    double a = abs(x);
    precise double z = mix(a * a, 0.5lf - 0.5lf * a, a > 0.5lf);
    double rest;
    precise double head = lx_asin_half_64(z, rest);
    precise double large = (1.5707963267948966lf - (head + head)) - (rest + rest - 6.123233995736766e-17lf);
    precise double small = head + rest;
    double result = mix(mix(small, a, a < 1.0e-8lf), large, a > 0.5lf);
    return lx_copy_sign_64(mix(result, uint64BitsToDouble(0x7ff8000000000000ul), !(a <= 1.0lf)), x);
}

//! function lx_acos_64 needs lx_asin_half_64
// pi/2 - asin(x) for |x| <= 1/2, else 2 asin(sqrt((1 - |x|) / 2)) or pi less it.
double lx_acos_64(double x) {
    double a = abs(x);
    precise double z = mix(a * a, 0.5lf - 0.5lf * a, a > 0.5lf);
    double rest;
    precise double head = lx_asin_half_64(z, rest);
    double sign = mix(1.0lf, -1.0lf, x < 0.0lf);
    // pi/2 - sign (head + rest), or offset + 2 sign (head + rest) with offset 0 or pi.
    precise double middle = (1.5707963267948966lf - sign * head) - (sign * rest - 6.123233995736766e-17lf);
    precise double offset = mix(0.0lf, 3.141592653589793lf, x < 0.0lf);
    precise double beyond = sign * (rest + rest) + mix(0.0lf, 1.2246467991473532e-16lf, x < 0.0lf);
    precise double outer = (offset + sign * (head + head)) + beyond;
    double result = mix(middle, outer, a > 0.5lf);
    return mix(result, uint64BitsToDouble(0x7ff8000000000000ul), !(a <= 1.0lf));
}

//! function lx_atan_ratio_64
// atan(numerator / denominator) in [0, pi/2] for two non-negative numbers, not both zero or both infinite; from
// tan(pi/8) to 1 as pi/4 less the angle whose tangent is (1 - t) / (1 + t).
double lx_atan_ratio_64(double numerator, double denominator) {
    bool swapped = numerator > denominator;
    double longer = max(numerator, denominator);
    double scale = mix(1.0lf, 7.458340731200207e-155lf, longer > 1.0e200lf);
    scale = mix(scale, 1.3407807929942597e+154lf, longer < 1.0e-200lf);
    precise double small = mix(numerator, denominator, swapped) * scale;
    precise double large = mix(denominator, numerator, swapped) * scale;
    bool turned = small > 0.41421356237309503lf * large;
    precise double t = mix(small, small - large, turned) / mix(large, small + large, turned);
    double z = t * t;
    double q = fma(0.016285183029865667lf, z, -0.034570044186095536lf);
    q = fma(q, z, 0.04551573086664191lf);
    q = fma(q, z, -0.052304498567092406lf);
    q = fma(q, z, 0.05878928398517232lf);
    q = fma(q, z, -0.06666424833613552lf);
    q = fma(q, z, 0.07692296372129964lf);
    q = fma(q, z, -0.09090908753400499lf);
    q = fma(q, z, 0.11111111105153429lf);
    q = fma(q, z, -0.14285714285659806lf);
    q = fma(q, z, 0.19999999999999804lf);
    q = fma(q, z, -0.3333333333333333lf);
    // A multiple of pi/4, in two parts, plus or less the polynomial's angle.
    double quarters = mix(mix(0.0lf, 1.0lf, turned), mix(2.0lf, 1.0lf, turned), swapped);
    double sign = mix(1.0lf, -1.0lf, swapped);
    precise double tail = fma(t * z, q, sign * quarters * 3.061616997868383e-17lf);
    precise double result = quarters * 0.7853981633974483lf + sign * (t + tail);
    return result;
}

//! function lx_atan_64 needs lx_atan_ratio_64, lx_copy_sign_64
// Inverse tangent.
double lx_atan_64(double x) {
    double a = abs(x);
    double result = lx_atan_ratio_64(a, 1.0lf);
    return lx_copy_sign_64(mix(result, a, doubleBitsToUint64(a) > 0x7ff0000000000000ul), x);
}

//! function lx_atan2_64 needs lx_atan_ratio_64, lx_copy_sign_64
// Angle of the point (x, y) in [-pi, pi]; signs of zeros and infinities as in IEEE 754's atan2.
double lx_atan2_64(double y, double x) {
    uint64_t infinity = 0x7ff0000000000000ul;
    uint64_t x_bits = doubleBitsToUint64(abs(x)), y_bits = doubleBitsToUint64(abs(y));
    // Infinities become 1 against 0 (or 1 against 1), and 0 / 0 becomes 0 / 1.
    bool infinite = max(x_bits, y_bits) >= infinity;
    double numerator = infinite ? (y_bits >= infinity ? 1.0lf : 0.0lf) : abs(y);
    double denominator = infinite ? (x_bits >= infinity ? 1.0lf : 0.0lf) : abs(x);
    denominator = (x_bits | y_bits) == 0ul ? 1.0lf : denominator;
    precise double angle = lx_atan_ratio_64(numerator, denominator);
    precise double beyond = 3.141592653589793lf - (angle - 1.2246467991473532e-16lf);
    angle = mix(angle, beyond, (doubleBitsToUint64(x) >> 63) != 0ul);
    angle = mix(angle, uint64BitsToDouble(0x7ff8000000000000ul), max(x_bits, y_bits) > infinity);
    return lx_copy_sign_64(angle, y);
}
//! end

void main() {}
