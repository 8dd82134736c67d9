#version 460
// Modified Bessel functions of the first kind, of orders 0 and 1, in float32; "scaled" is times e^-|x|.
// Polynomials are our own Remez-like fits with coefficients rounded to float32 one after the other: in (x/2)^2 below
// 5, where all are positive, and in 1/x above (Abramowitz and Stegun 9.6.10 and 9.7.1).

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
float lx_sqrt(float x) { return sqrt(x); }
float lx_exp(float x) { return exp(x); }
float lx_exp_scaled(float x, int k) { return exp(x) * exp2(float(k)); }

//! function lx_bessel_i0_small
// I0(a) for 0 <= a <= 5.
float lx_bessel_i0_small(float a) {
    precise float z = 0.25 * (a * a);
    float q = fma(8.21842e-10, z, 3.7335454e-08);
    q = fma(q, z, 1.9388908e-06);
    q = fma(q, z, 6.941933e-05);
    q = fma(q, z, 0.0017361424);
    q = fma(q, z, 0.027777763);
    q = fma(q, z, 0.25);
    q = fma(q, z, 1.0);
    precise float result = fma(q, z, 1.0);
    return result;
}

//! function lx_bessel_i0_large needs lx_sqrt
// I0(a) e^-a for a >= 5.
float lx_bessel_i0_large(float a) {
    float u = 1.0 / mix(a, 1e30, a > 1e30);
    float q = fma(-27.97902, u, 17.641493);
    q = fma(q, u, -3.8142993);
    q = fma(q, u, 0.47175986);
    q = fma(q, u, 0.0052822507);
    q = fma(q, u, 0.028694857);
    q = fma(q, u, 0.049861144);
    q = fma(q, u, 0.3989423);
    precise float result = q / lx_sqrt(a);
    return result;
}

//! function lx_bessel_i1_small
// I1(a) for 0 <= a <= 5.
float lx_bessel_i1_small(float a) {
    precise float z = 0.25 * (a * a);
    float q = fma(9.206671e-11, z, 4.648469e-09);
    q = fma(q, z, 2.7717041e-07);
    q = fma(q, z, 1.1568909e-05);
    q = fma(q, z, 0.0003472313);
    q = fma(q, z, 0.0069444366);
    q = fma(q, z, 0.083333336);
    q = fma(q, z, 0.5);
    precise float result = (0.5 * a) * fma(q, z, 1.0);
    return result;
}

//! function lx_bessel_i1_large needs lx_sqrt
// I1(a) e^-a for a >= 5.
float lx_bessel_i1_large(float a) {
    float u = 1.0 / mix(a, 1e30, a > 1e30);
    float q = fma(193.2426, u, -127.757454);
    q = fma(q, u, 33.44052);
    q = fma(q, u, -5.0414653);
    q = fma(q, u, 0.37199888);
    q = fma(q, u, -0.062747486);
    q = fma(q, u, -0.046169385);
    q = fma(q, u, -0.14960961);
    q = fma(q, u, 0.3989423);
    precise float result = q / lx_sqrt(a);
    return result;
}

//! function lx_bessel_i0e needs lx_bessel_i0_small, lx_bessel_i0_large, lx_exp
// I0(x) e^-|x|.
float lx_bessel_i0e(float x) {
    float a = abs(x);
    precise float small = lx_bessel_i0_small(a) * lx_exp(-a);
    float result = mix(small, lx_bessel_i0_large(a), a > 5.0);
    return mix(result, x, floatBitsToUint(a) > 0x7f800000u);
}

//! function lx_bessel_i0 needs lx_bessel_i0_small, lx_bessel_i0_large, lx_exp_scaled
// I0(x). The exponential is taken times 2^-40, as it overflows before I0 does.
float lx_bessel_i0(float x) {
    float a = abs(x);
    precise float large = (lx_bessel_i0_large(a) * lx_exp_scaled(a, -40)) * 1.0995116e+12;
    float result = mix(lx_bessel_i0_small(a), large, a > 5.0);
    return mix(result, a, floatBitsToUint(a) >= 0x7f800000u);
}

//! function lx_bessel_i1e needs lx_bessel_i1_small, lx_bessel_i1_large, lx_exp
// I1(x) e^-|x|.
float lx_bessel_i1e(float x) {
    float a = abs(x);
    precise float small = lx_bessel_i1_small(a) * lx_exp(-a);
    float result = mix(small, lx_bessel_i1_large(a), a > 5.0);
    result = mix(result, a, floatBitsToUint(a) > 0x7f800000u);
    return uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) & 0x80000000u));
}

//! function lx_bessel_i1 needs lx_bessel_i1_small, lx_bessel_i1_large, lx_exp_scaled
// I1(x).
float lx_bessel_i1(float x) {
    float a = abs(x);
    precise float large = (lx_bessel_i1_large(a) * lx_exp_scaled(a, -40)) * 1.0995116e+12;
    float result = mix(lx_bessel_i1_small(a), large, a > 5.0);
    result = mix(result, a, floatBitsToUint(a) >= 0x7f800000u);
    return uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) & 0x80000000u));
}
//! end

void main() {}
