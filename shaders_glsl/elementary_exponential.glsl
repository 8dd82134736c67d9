#version 460
// Exponential family in float32: exp, exp2, expm1, logistic, the hyperbolic and the error functions.
// Method: Cody and Waite, "Software Manual for the Elementary Functions" (1980): x = n ln 2 + r, |r| <= ln(2)/2,
// with ln 2 in two parts of which n times the first is exact; then a minimax polynomial (our own Remez-like fits,
// coefficients rounded to float32 one after the other) and a scaling by powers of two built from bits.
// Results do not depend on whether fma is fused. If it is not, a driver may replace fma(n, a, fma(n, b, x)) by
// n (a + b) + x, so the value before the last of such terms is precise. Selections are mix(otherwise, chosen, condition),
// which never branches: a vector processor computes both sides anyway.

//! function lx_power_of_two
// 2^n for -126 <= n <= 127.
float lx_power_of_two(int n) { return intBitsToFloat((n + 127) << 23); }

//! function lx_scale needs lx_power_of_two
// x 2^n for -252 <= n <= 254, in two steps so that neither factor over- or underflows.
float lx_scale(float x, int n) {
    int half_n = n >> 1;
    precise float scaled = (x * lx_power_of_two(half_n)) * lx_power_of_two(n - half_n);
    return scaled;
}

//! function lx_exp_polynomial
// e^r - 1 for |r| <= 0.4; near 0 good to 2^-26 of e^r. By Estrin's scheme: half as many operations wait for each other.
float lx_exp_polynomial(float r) {
    float z = r * r;
    float q = fma(0.0013820136, z, fma(0.008368686, r, 0.041668274));
    q = fma(q, z, fma(0.16666521, r, 0.49999994));
    precise float p = fma(q, z, r);
    return p;
}

//! function lx_exp_reduced
// x = n ln 2 + r. `shifted` is n + offset, which is 1.5 2^23 and a bias: so n + bias stands in its lowest bits, and
// 2^(n + bias - 127) is these, moved to the exponent's place. GPUs round and convert slowly.
float lx_exp_reduced(float x, float offset, out float shifted) {
    precise float sum = fma(x, 1.442695, offset);
    precise float minus_n = offset - sum;
    precise float near = x + minus_n * 0.69314575;
    precise float r = fma(minus_n, 1.4286068e-06, near);
    shifted = sum;
    return r;
}

//! function lx_exp_scaled needs lx_exp_reduced, lx_exp_polynomial
// 2^k e^x for -40 <= k <= 0; overflow and underflow happen only where the result's own do. 2^(n + k) is two factors,
// neither of which over- or underflows: a bias of 254 is 127 for each.
float lx_exp_scaled(float x, int k) {
    float shifted;
    float r = lx_exp_reduced(x, 12583166.0, shifted);
    int exponent = floatBitsToInt(shifted) + k;
    int half_exponent = exponent >> 1;
    float power = intBitsToFloat(half_exponent << 23);
    float rest = intBitsToFloat((exponent - half_exponent) << 23);
    precise float result = fma(power, lx_exp_polynomial(r), power) * rest;
    result = mix(result, 0.0, x < -110.0);
    return mix(result, uintBitsToFloat(0x7f800000u), x > 130.0);
}

//! function lx_exp needs lx_exp_scaled
// e^x.
float lx_exp(float x) { return lx_exp_scaled(x, 0); }

//! function lx_exp_nonpositive needs lx_exp_reduced, lx_exp_polynomial
// e^x for x <= 1; results that are denormal numbers may be 0. A 2^n below the normal numbers has 0 for its bits.
float lx_exp_nonpositive(float x) {
    float shifted;
    float r = lx_exp_reduced(x, 12583039.0, shifted);
    float power = uintBitsToFloat(floatBitsToUint(shifted) << 23);
    precise float result = fma(power, lx_exp_polynomial(r), power);
    return mix(result, 0.0, x < -88.0);
}

//! function lx_exp_term
// e^x for x <= 20, as a term of a sum that is not far below 1: 0 where it is far below the last place of 1.
// x = n ln 2 + r, and e^r is the builtin 2^f, |f| <= 1/2, which Vulkan bounds by 3 + 2 |f| units; n + 127 stands in the
// lowest bits of `shifted`. Where n is kept from falling below -126 f falls in its place, so -inf has 0, and NaN stays.
float lx_exp_term(float x) {
    precise float shifted = max(fma(x, 1.442695, 12583039.0), 12582913.0);
    precise float minus_n = 12583039.0 - shifted;
    precise float near = fma(minus_n, 0.69314575, x);
    precise float scaled = near * 1.442695;
    precise float f = fma(minus_n, 2.0610441e-06, scaled);
    return exp2(f) * uintBitsToFloat(floatBitsToUint(shifted) << 23);
}

//! function lx_exp2
// 2^x; exact for whole x.
float lx_exp2(float x) {
    precise float shifted = x + 12583166.0;
    precise float minus_n = 12583166.0 - shifted;
    precise float r = x + minus_n;
    float z = r * r;
    float q = fma(fma(0.00015329264, r, 0.0013390969), z, fma(0.009618499, r, 0.055503596));
    q = fma(q, z, fma(0.24022648, r, 0.6931472));
    int exponent = floatBitsToInt(shifted);
    int half_exponent = exponent >> 1;
    float power = intBitsToFloat(half_exponent << 23);
    float rest = intBitsToFloat((exponent - half_exponent) << 23);
    precise float result = fma(power, q * r, power) * rest;
    result = mix(result, 0.0, x < -155.0);
    return mix(result, uintBitsToFloat(0x7f800000u), x > 130.0);
}

//! function lx_expm1 needs lx_exp_reduced
// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), halved, so that 2^n does not overflow before the result.
float lx_expm1(float x) {
    float y = mix(x, 89.0, x > 89.0);
    y = mix(y, -18.0, y < -18.0);
    float shifted;
    float r = lx_exp_reduced(y, 12583038.0, shifted);
    float z = r * r;
    float q = fma(0.0013870696, z, fma(0.008366272, r, 0.041667435));
    q = fma(q, z, fma(0.16666546, r, 0.49999997));
    precise float p = fma(q, z, r);
    float power = uintBitsToFloat(floatBitsToUint(shifted) << 23);
    precise float below = power - 0.5;
    precise float result = fma(power, p, below);
    result = result + result;
    uint magnitude = floatBitsToUint(x) & 0x7fffffffu;
    // Below 2^-25 the result is x; half of it may be denormal. This keeps the sign of zero, too, and NaN, for which a
    // driver may take any of the selections above.
    return mix(result, x, magnitude > 0x7f800000u || magnitude < 0x33000000u);
}

//! function lx_logistic needs lx_exp_reduced, lx_exp_polynomial
// 1 / (1 + e^-x), from e^-|x| so that nothing overflows; 2^64 times that first, so that 2^n is a normal number.
float lx_logistic(float x) {
    float a = abs(x);
    float shifted;
    float r = lx_exp_reduced(-a, 12583103.0, shifted);
    float power = uintBitsToFloat(floatBitsToUint(shifted) << 23);
    precise float e = fma(power, lx_exp_polynomial(r), power) * 5.421011e-20;
    e = mix(e, 0.0, a > 110.0);
    precise float result = mix(1.0, e, x < 0.0) / (1.0 + e);
    return result;
}

//! function lx_tanh
// t / (1 - t) with t = (1 - e^-2|x|) / 2, and -2|x| = n ln 2 - 2 w; in 2 w the polynomial is that of e^r - 1.
float lx_tanh(float x) {
    float a = abs(x);
    precise float y = mix(a, 10.0, a > 10.0);
    precise float shifted = fma(y, -2.88539, 12583039.0);
    precise float minus_n = 12583039.0 - shifted;
    precise float near = y - minus_n * 0.34657288;
    precise float w = fma(minus_n, -7.143034e-07, near);
    float z = w * w;
    float q = fma(0.044612925, z, fma(-0.13387331, w, 0.33333117));
    q = fma(q, z, fma(-0.6666616, w, 1.0));
    precise float p = fma(-z, q, w);
    float power = uintBitsToFloat(floatBitsToUint(shifted) << 23);
    precise float above = 0.5 * (1.0 - power);
    precise float t = fma(power, p, above);
    precise float result = t / (1.0 - t);
    result = uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) ^ floatBitsToUint(a)));
    return mix(result, x, (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u);
}

//! function lx_cosh needs lx_exp_scaled
// h + 1 / 4h with h = e^|x| / 2.
float lx_cosh(float x) {
    float h = lx_exp_scaled(abs(x), -1);
    precise float result = h + 0.25 / h;
    return result;
}

//! function lx_sinh needs lx_exp_scaled
// h - 1 / 4h with h = e^|x| / 2; an odd polynomial below 1, where that difference would cancel.
float lx_sinh(float x) {
    float magnitude = abs(x);
    float h = lx_exp_scaled(magnitude, -1);
    precise float large = h - 0.25 / h;
    float z = x * x;
    float q = fma(2.7822132e-06, z, 0.00019842896);
    q = fma(q, z, 0.0083333105);
    q = fma(q, z, 0.16666667);
    precise float small = fma(magnitude * z, q, magnitude);
    float result = mix(large, small, magnitude < 1.0);
    return uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) & 0x80000000u));
}

//! function lx_erf_small
// erf(x) for |x| <= 0.96.
float lx_erf_small(float x) {
    float z = x * x;
    float square = z * z;
    float q = fma(fma(-0.0005779039, z, 0.0049501136), square, fma(-0.02673623, z, 0.1128095));
    q = fma(q, square, fma(-0.37612408, z, 0.12837914));
    precise float result = x * (1.0 + q);  // no product with q alone, which may be denormal where the result is not
    return result;
}

//! function lx_erfc_large needs lx_scale, lx_exp_polynomial
// erfc(a) for a >= 1/2: e^(-a^2) / (1 + 2 a) times a polynomial in (a - 2) / (a + 2). a^2 is taken as the exact
// square of a's 12-bit head and a small rest.
float lx_erfc_large(float a) {
    precise float v = mix(a, 10.5, a > 10.5);
    precise float head = uintBitsToFloat(floatBitsToUint(v) & 0xfffff000u);
    precise float rest = (v - head) * (v + head);
    precise float n = roundEven(v * v * -1.442695);
    precise float r = ((-(head * head) - n * 0.69314575) - n * 1.4286068e-06) - rest;
    precise float u = (v - 2.0) / (v + 2.0);
    float q = fma(-0.00023075707, u, -0.00128502);
    q = fma(q, u, 0.0011583815);
    q = fma(q, u, 0.008675477);
    q = fma(q, u, -0.008011861);
    q = fma(q, u, -0.054215815);
    q = fma(q, u, 0.16404983);
    q = fma(q, u, -0.16603036);
    q = fma(q, u, -0.09276382);
    q = fma(q, u, 1.2769784);
    precise float factor = q / (v + v + 1.0);
    precise float result = fma(factor, lx_exp_polynomial(r), factor);
    return lx_scale(result, int(n));
}

//! function lx_erf needs lx_erf_small
// The error function; from 0.95 on 1 less a power of two, whose exponent is a polynomial.
float lx_erf(float x) {
    float magnitude = abs(x);
    float a = mix(magnitude, 4.0, magnitude > 4.0);
    float z = a * a;
    float e = fma(fma(-0.0017464708, a, 0.02201449), z, fma(-0.1300407, a, -0.9409186));
    e = fma(e, z, fma(-1.6145921, a, -0.0031331205));
    precise float shifted = e + 12583039.0;
    precise float minus_n = 12583039.0 - shifted;
    precise float r = e + minus_n;
    float square = r * r;
    float q = fma(0.0013264825, square, fma(0.009671506, r, 0.055507336));
    q = fma(q, square, fma(0.24022242, r, 0.693147));
    float power = uintBitsToFloat(floatBitsToUint(shifted) << 23);
    precise float missing = fma(power, q * r, power);
    float result = mix(1.0 - missing, lx_erf_small(a), a < 0.95);
    result = uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) ^ floatBitsToUint(magnitude)));
    return mix(result, x, (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u);
}

//! function lx_erfc needs lx_erf_small, lx_erfc_large
// 1 - erf(x).
float lx_erfc(float x) {
    float magnitude = abs(x);
    precise float large = lx_erfc_large(magnitude);
    large = mix(large, 2.0 - large, x < 0.0);
    precise float result = mix(large, 1.0 - lx_erf_small(x), magnitude < 0.7);
    return mix(result, x, (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u);
}

//! function lx_erfcx needs lx_scale, lx_exp_polynomial
// e^(x^2) erfc(x): 1 / (1 + 2 x) times a polynomial in (x - 2) / (x + 2) above 0, 2 e^(x^2) less that of -x below.
float lx_erfcx(float x) {
    float a = abs(x);
    precise float bounded = mix(a, 1e18, a > 1e18);
    precise float u = (bounded - 2.0) / (bounded + 2.0);
    float q = fma(6.0563056e-05, u, 0.00016316907);
    q = fma(q, u, -0.0003506668);
    q = fma(q, u, -0.0014020571);
    q = fma(q, u, 0.0012108375);
    q = fma(q, u, 0.008695301);
    q = fma(q, u, -0.008016561);
    q = fma(q, u, -0.054214515);
    q = fma(q, u, 0.16404918);
    q = fma(q, u, -0.16603068);
    q = fma(q, u, -0.09276377);
    q = fma(q, u, 1.2769784);
    precise float positive = (0.5 * q) / (a + 0.5);
    precise float v = mix(a, 10.0, a > 10.0);
    precise float head = uintBitsToFloat(floatBitsToUint(v) & 0xfffff000u);
    precise float n = roundEven(v * v * 1.442695);
    precise float r = ((head * head - n * 0.69314575) - n * 1.4286068e-06) + (v - head) * (v + head);
    precise float negative = lx_scale(1.0 + lx_exp_polynomial(r), int(n) + 1) - positive;
    float result = mix(positive, negative, x < 0.0);
    return mix(result, x, floatBitsToUint(a) > 0x7f800000u);
}

//! function lx_ndtr needs lx_scale, lx_exp_polynomial
// The probability that a normal variate is below x: beyond |x| it lies with e^(-x^2 / 2) / (1 + |x|) times a polynomial
// in (|x| - 3) / (|x| + 3). x^2 is taken as the exact square of its 12-bit head and a small rest.
float lx_ndtr(float x) {
    float a = abs(x);
    precise float v = mix(a, 16.0, a > 16.0);
    precise float head = uintBitsToFloat(floatBitsToUint(v) & 0xfffff000u);
    precise float rest = 0.5 * ((v - head) * (v + head));
    precise float n = roundEven(v * v * -0.7213475);
    precise float r = ((-0.5 * (head * head) - n * 0.69314575) - n * 1.4286068e-06) - rest;
    precise float u = (v - 3.0) / (v + 3.0);
    float q = fma(4.9552986e-05, u, 1.6464683e-05);
    q = fma(q, u, -0.00047193517);
    q = fma(q, u, -0.00034451336);
    q = fma(q, u, 0.0029921487);
    q = fma(q, u, 0.0011565994);
    q = fma(q, u, -0.022727096);
    q = fma(q, u, 0.045164406);
    q = fma(q, u, -0.016432272);
    q = fma(q, u, -0.09652677);
    q = fma(q, u, 0.4860558);
    precise float divisor = v + 1.0;
    precise float factor = q / divisor;
    precise float missing = v - (divisor - 1.0);
    precise float tail = fma(factor, lx_exp_polynomial(r) - missing / divisor, factor);
    tail = lx_scale(tail, int(n));
    precise float result = mix(1.0 - tail, tail, x < 0.0);
    return mix(result, x, floatBitsToUint(a) > 0x7f800000u);
}
//! end

void main() {}
