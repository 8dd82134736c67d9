#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Exponential family in float64: exp, exp2, expm1, logistic and the hyperbolic functions; GLSL has none of them.
// The methods are those of elementary_exponential.glsl. Polynomials are our own fits: interpolation at Chebyshev's
// points with 260 bits, coefficients then rounded. Results do not depend on fused fma.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
bool lx_isnan_64(double x) { return isnan(x); }
double lx_power_of_two_64(int n) { return ldexp(1.0lf, n); }

//! function lx_scale_64 needs lx_power_of_two_64
// x 2^n for -2044 <= n <= 2046, in two steps so that neither factor over- or underflows.
double lx_scale_64(double x, int n) {
    int half_n = n >> 1;
    precise double scaled = (x * lx_power_of_two_64(half_n)) * lx_power_of_two_64(n - half_n);
    return scaled;
}

//! function lx_copy_sign_64
// |x| with the sign of y.
double lx_copy_sign_64(double x, double y) {
    uint64_t sign = 0x8000000000000000ul;
    return uint64BitsToDouble((doubleBitsToUint64(x) & ~sign) | (doubleBitsToUint64(y) & sign));
}

//! function lx_exp_polynomial_64
// e^r - 1 for |r| <= 0.347.
double lx_exp_polynomial_64(double r) {
    double q = fma(1.60866903974611e-10lf, r, 2.0918231419370054e-09lf);
    q = fma(q, r, 2.5052070925322046e-08lf);
    q = fma(q, r, 2.755726302557563e-07lf);
    q = fma(q, r, 2.755731924737679e-06lf);
    q = fma(q, r, 2.4801587336679385e-05lf);
    q = fma(q, r, 0.00019841269841263238lf);
    q = fma(q, r, 0.0013888888888878984lf);
    q = fma(q, r, 0.008333333333333333lf);
    q = fma(q, r, 0.04166666666666668lf);
    q = fma(q, r, 0.16666666666666666lf);
    q = fma(q, r, 0.5lf);
    precise double p = fma(r * r, q, r);
    return p;
}

//! function lx_exp_scaled_64 needs lx_scale_64, lx_exp_polynomial_64
// 2^k e^(x + rest) for a small k and a rest far below 1; over- and underflow happen only where the result's own do.
// NaN in, anything out. Cody and Waite: ln 2 in two parts, the first of 40 bits.
double lx_exp_scaled_64(double x, double rest, int k) {
    precise double y = mix(x, 850.0lf, x > 850.0lf);
    y = mix(y, -850.0lf, y < -850.0lf);
    precise double n = roundEven(y * 1.4426950408889634lf);
    precise double r = (y - n * 0.6931471805592082lf) - (n * 7.371002565167799e-13lf - rest);
    precise double p = 1.0lf + lx_exp_polynomial_64(r);
    return lx_scale_64(p, int(n) + k);
}

//! function lx_exp_64 needs lx_exp_scaled_64, lx_isnan_64
// e^x.
double lx_exp_64(double x) { return mix(lx_exp_scaled_64(x, 0.0lf, 0), x, lx_isnan_64(x)); }

//! function lx_exp2_polynomial_64
// 2^r for |r| <= 1/2.
double lx_exp2_polynomial_64(double r) {
    double q = fma(2.5729324177362305e-11lf, r, 4.4558179083360645e-10lf);
    q = fma(q, r, 7.0548973041554995e-09lf);
    q = fma(q, r, 1.0178057087733941e-07lf);
    q = fma(q, r, 1.3215486808705563e-06lf);
    q = fma(q, r, 1.5252733841556773e-05lf);
    q = fma(q, r, 0.00015403530393370734lf);
    q = fma(q, r, 0.001333355814640647lf);
    q = fma(q, r, 0.00961812910762848lf);
    q = fma(q, r, 0.055504108664821625lf);
    q = fma(q, r, 0.24022650695910072lf);
    q = fma(q, r, 0.6931471805599453lf);
    precise double p = fma(q, r, 1.0lf);
    return p;
}

//! function lx_exp2_64 needs lx_scale_64, lx_isnan_64, lx_exp2_polynomial_64
// 2^x; exact for whole x.
double lx_exp2_64(double x) {
    precise double y = mix(x, 1100.0lf, x > 1100.0lf);
    y = mix(y, -1200.0lf, y < -1200.0lf);
    double n = roundEven(y);
    precise double r = y - n;
    precise double p = lx_exp2_polynomial_64(r);
    return mix(lx_scale_64(p, int(n)), x, lx_isnan_64(x));
}

//! function lx_expm1_64 needs lx_power_of_two_64, lx_exp_polynomial_64, lx_isnan_64
// e^x - 1 = 2^n (e^r - 1) + (2^n - 1); below 2^-54 the result is x, with the sign of zero.
double lx_expm1_64(double x) {
    precise double y = mix(x, 709.9lf, x > 709.9lf);
    y = mix(y, -40.0lf, y < -40.0lf);
    precise double n = roundEven(y * 1.4426950408889634lf);
    precise double r = (y - n * 0.6931471805592082lf) - n * 7.371002565167799e-13lf;
    bool last = n > 1023.0lf;
    double power = lx_power_of_two_64(last ? 1023 : int(n));
    precise double result = fma(power, lx_exp_polynomial_64(r), power - 1.0lf) * mix(1.0lf, 2.0lf, last);
    return mix(result, x, lx_isnan_64(x) || abs(x) < 5.551115123125783e-17lf);
}

//! function lx_logistic_64 needs lx_exp_64
// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
double lx_logistic_64(double x) {
    double e = lx_exp_64(-abs(x));
    precise double result = mix(1.0lf, e, x < 0.0lf) / (1.0lf + e);
    return result;
}

//! function lx_tanh_64 needs lx_expm1_64, lx_copy_sign_64
// t / (t + 2) with t = e^2|x| - 1.
double lx_tanh_64(double x) {
    double magnitude = abs(x);
    double t = lx_expm1_64(mix(magnitude + magnitude, 44.0lf, magnitude > 22.0lf));
    precise double result = t / (t + 2.0lf);
    return lx_copy_sign_64(result, x);
}

//! function lx_cosh_64 needs lx_exp_scaled_64, lx_isnan_64
// h + 1 / 4h with h = e^|x| / 2.
double lx_cosh_64(double x) {
    double h = lx_exp_scaled_64(abs(x), 0.0lf, -1);
    precise double result = h + 0.25lf / h;
    return mix(result, x, lx_isnan_64(x));
}

//! function lx_sinh_64 needs lx_exp_scaled_64, lx_copy_sign_64, lx_isnan_64
// h - 1 / 4h with h = e^|x| / 2; an odd polynomial below 1, where that difference would cancel.
double lx_sinh_64(double x) {
    double magnitude = abs(x);
    double h = lx_exp_scaled_64(magnitude, 0.0lf, -1);
    precise double large = h - 0.25lf / h;
    double z = x * x;
    double q = fma(7.746178593018827e-13lf, z, 1.6057679623801638e-10lf);
    q = fma(q, z, 2.5052117695907823e-08lf);
    q = fma(q, z, 2.7557319191381816e-06lf);
    q = fma(q, z, 0.00019841269841324198lf);
    q = fma(q, z, 0.008333333333333299lf);
    q = fma(q, z, 0.16666666666666666lf);
    precise double small = fma(magnitude * z, q, magnitude);
    double result = lx_copy_sign_64(mix(large, small, magnitude < 1.0lf), x);
    return mix(result, x, lx_isnan_64(x));
}
//! end

void main() {}
