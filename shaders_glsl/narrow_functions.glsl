#version 460
// Functions in float32 whose results are rounded to 16 bits. They are within 2^-15 of the exact result, within 2^-17 for
// |x| <= 10, where half a place of bfloat16 is 2^-9 and of float16 2^-12; denormal results may be 0. They take 2^x from
// the device, which Vulkan bounds by 3 + 2 |x| units of float32 ("Precision and Operation of SPIR-V Instructions"), and
// quotients whose divisor is between 1 and 5, bounded by 2.5 units. Selections are mix(otherwise, chosen, condition).

//! function lx_narrow_exp
// e^x.
float lx_narrow_exp(float x) { return exp2(x * 1.442695); }

//! function lx_narrow_logistic
// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
float lx_narrow_logistic(float x) {
    float e = exp2(abs(x) * -1.442695);
    return mix(1.0, e, x < 0.0) / (1.0 + e);
}

//! function lx_narrow_tanh
// (1 - e^-2|x|) / (1 + e^-2|x|), and x - x^3 / 3 + 2 x^5 / 15 where that difference would cancel. So x - tanh x, which is
// much less than either, has the places of float16, too.
float lx_narrow_tanh(float x) {
    float a = abs(x);
    float e = exp2(a * -2.88539);
    float large = (1.0 - e) / (1.0 + e);
    float square = x * x;
    float small = x * fma(square, fma(square, 0.13333334, -0.33333334), 1.0);
    float result = mix(mix(large, -large, x < 0.0), small, a < 0.15);
    return result;
}

//! function lx_narrow_erfc
// 1 - erf(x): e^(-x^2) times a polynomial in t = 1 / (1 + 3/8 |x|) without a constant term, as in Abramowitz and Stegun,
// "Handbook of Mathematical Functions" (1964), 7.1.26, but fitted to relative errors (6.4e-7 for |x| <= 10).
float lx_narrow_erfc(float x) {
    float magnitude = abs(x);
    float a = mix(magnitude, 10.5, magnitude > 10.5);
    float t = 1.0 / fma(0.375, a, 1.0);
    float q = fma(t, -0.13509509, 0.387935);
    q = fma(q, t, -0.12959336);
    q = fma(q, t, 0.28305874);
    q = fma(q, t, 0.16666563);
    q = fma(q, t, 0.21568897);
    q = fma(q, t, 0.21133946);
    float tail = exp2(magnitude * a * -1.442695) * (q * t);  // NaN, which a may lose
    return mix(tail, 2.0 - tail, x < 0.0);
}

//! function lx_narrow_erf needs lx_narrow_erfc
// The error function; where 1 - erfc(|x|) would cancel its series, 7.1.5, in powers of x^2 (fitted, 2^-23 for |x| <= 0.7).
float lx_narrow_erf(float x) {
    float magnitude = abs(x);
    float large = 1.0 - lx_narrow_erfc(magnitude);
    float z = x * x;
    float q = fma(z, 0.0042331274, -0.026431162);
    q = fma(q, z, 0.11275815);
    q = fma(q, z, -0.3761212);
    q = fma(q, z, 1.1283791);
    return mix(mix(large, -large, x < 0.0), x * q, magnitude < 0.7);
}
//! end

void main() {}
