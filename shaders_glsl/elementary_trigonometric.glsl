#version 460
// Sine, cosine and tangent in float32, over the whole range.
// The argument is reduced in integers (Payne and Hanek, "Radian Reduction for Trigonometric Functions", 1983): its
// mantissa times the 96 bits of 2/pi that matter gives the quadrant and 62 bits of fraction. This costs four 32-bit
// multiplications whatever the argument, so there is no second path for large ones and no branch.

//! function lx_reduce_angle
// |x| = quadrant pi/2 + r (modulo 2 pi), |r| <= pi/4, for finite x. r is within 1.5 units.
float lx_reduce_angle(float x, out uint quadrant) {
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    int exponent = int(bits >> 23) - 127;
    // x = mantissa 2^(exponent - 31); an exponent of -1 counts as 0 with half the mantissa.
    uint mantissa = ((bits << 8) | 0x80000000u) >> (uint(exponent) >> 31);
    uint start = uint(max(exponent, 0));
    // Bits of (2/pi) 2^-33 from `start` on: a word shifter of two stages, then one of single bits.
    bool far = (start & 64u) != 0u;
    uint a0 = mix(0x00000000u, 0x27220a94u, far);
    uint a1 = mix(0x517cc1b7u, 0xfe13abe8u, far);
    uint a2 = mix(0x27220a94u, 0xfa9a6ee0u, far);
    uint a3 = mix(0xfe13abe8u, 0x6db14accu, far);
    uint a4 = mix(0xfa9a6ee0u, 0x9e21c820u, far);
    bool near = (start & 32u) == 0u;
    uint b0 = mix(a1, a0, near);
    uint b1 = mix(a2, a1, near);
    uint b2 = mix(a3, a2, near);
    uint b3 = mix(a4, a3, near);
    uint left = start & 31u;
    uint right = 31u - left;
    uint c0 = (b0 << left) | ((b1 >> 1) >> right);
    uint c1 = (b1 << left) | ((b2 >> 1) >> right);
    uint c2 = (b2 << left) | ((b3 >> 1) >> right);
    // The product modulo 4 in units of 2^-62.
    uint high1, low1, high2, low2;
    umulExtended(mantissa, c1, high1, low1);
    umulExtended(mantissa, c2, high2, low2);
    uint low = low1 + high2;
    uint high = mantissa * c0 + high1 + mix(0u, 1u, low < high2);
    uint turn = high + 0x20000000u;
    int fraction = int(high - (turn & 0xc0000000u));
    int sign_mask = fraction >> 31;
    // Sign and magnitude, so that the parts add without cancellation; times (pi/2) 2^-30, whose 12-bit head makes an
    // exact product with the fraction's 12 upper bits (Dekker 1971).
    int whole = fraction ^ sign_mask;
    precise float head = float(whole & 0x1ffe0000);
    precise float tail = float(whole & 0x0001ffff) + float(int((low ^ uint(sign_mask)) >> 1)) * 4.656613e-10;
    precise float reduced = head * 1.4629222e-09 + (head * -4.1485344e-15 + tail * 1.4629181e-09);
    reduced = uintBitsToFloat(floatBitsToUint(reduced) | (uint(sign_mask) & 0x80000000u));
    bool small = bits < 0x3f490fdbu;
    quadrant = mix(turn >> 30, 0u, small);
    return mix(reduced, uintBitsToFloat(bits), small);
}

//! function lx_sin_polynomial
// sin(r) for |r| <= pi/4.
float lx_sin_polynomial(float r) {
    float z = r * r;
    float q = fma(-0.00019517909, z, 0.008332187);
    q = fma(q, z, -0.16666655);
    precise float result = fma(r * z, q, r);
    return result;
}

//! function lx_cos_polynomial
// cos(r) for |r| <= pi/4.
float lx_cos_polynomial(float r) {
    float z = r * r;
    float q = fma(2.4432336e-05, z, -0.001388731);
    q = fma(q, z, 0.041666646);
    precise float result = 1.0 - (0.5 * z - (z * z) * q);
    return result;
}

//! function lx_sin needs lx_reduce_angle, lx_sin_polynomial, lx_cos_polynomial
// Sine of x radians; NaN for infinities.
float lx_sin(float x) {
    uint quadrant;
    float r = lx_reduce_angle(x, quadrant);
    float value = mix(lx_sin_polynomial(r), lx_cos_polynomial(r), (quadrant & 1u) != 0u);
    uint flip = ((quadrant << 30) ^ floatBitsToUint(x)) & 0x80000000u;
    bool finite = (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u;
    return uintBitsToFloat(mix(0x7fc00000u, floatBitsToUint(value) ^ flip, finite));
}

//! function lx_cos needs lx_reduce_angle, lx_sin_polynomial, lx_cos_polynomial
// Cosine of x radians; NaN for infinities.
float lx_cos(float x) {
    uint quadrant;
    float r = lx_reduce_angle(x, quadrant);
    float value = mix(lx_cos_polynomial(r), lx_sin_polynomial(r), (quadrant & 1u) != 0u);
    uint flip = ((quadrant + 1u) << 30) & 0x80000000u;
    bool finite = (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u;
    return uintBitsToFloat(mix(0x7fc00000u, floatBitsToUint(value) ^ flip, finite));
}

//! function lx_tan needs lx_reduce_angle
// Tangent of x radians; NaN for infinities. In odd quadrants -1 / tan(r).
float lx_tan(float x) {
    uint quadrant;
    float r = lx_reduce_angle(x, quadrant);
    float z = r * r;
    float q = fma(0.009395594, z, 0.0031029512);
    q = fma(q, z, 0.02444057);
    q = fma(q, z, 0.05340839);
    q = fma(q, z, 0.13338834);
    q = fma(q, z, 0.33333156);
    precise float t = fma(r * z, q, r);
    precise float value = mix(t, -1.0 / t, (quadrant & 1u) != 0u);
    uint flip = floatBitsToUint(x) & 0x80000000u;
    bool finite = (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u;
    return uintBitsToFloat(mix(0x7fc00000u, floatBitsToUint(value) ^ flip, finite));
}
//! end

void main() {}
