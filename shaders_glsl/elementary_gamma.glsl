#version 460
// The logarithm of the gamma function and its derivative in float32.
// Polynomials are our own Remez-like fits with coefficients rounded to float32 one after the other. Formulas: Abramowitz
// and Stegun, "Handbook of Mathematical Functions" (1964), 6.1.15, 6.1.17, 6.1.40, 6.3.5, 6.3.7 and 6.3.18.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
float lx_log(float x) { return log(x); }
float lx_divide(float x, float y) { return x / y; }
float lx_sin_polynomial(float r) { return sin(r); }
float lx_cos_polynomial(float r) { return cos(r); }

//! function lx_lgamma_near_two
// log(gamma(2 + t)) for -3/4 <= t <= 1/4.
float lx_lgamma_near_two(float t) {
    float q = fma(-0.0007977174, t, -9.583328e-05);
    q = fma(q, t, -0.0013939049);
    q = fma(q, t, 0.0029055823);
    q = fma(q, t, -0.0073687523);
    q = fma(q, t, 0.020582022);
    q = fma(q, t, -0.067352384);
    q = fma(q, t, 0.32246703);
    q = fma(q, t, 0.42278433);
    return q * t;
}

//! function lx_lgamma_steps
// What multiplies gamma in [1.25, 2.25] on the way to gamma(y), -1/2 < y < 8, by the recurrence, or divides it, where
// `n`, the distance from there, is less than 1.5.
float lx_lgamma_steps(float y, float n) {
    precise float above = mix(1.0, y - 1.0, n > 2.5);
    above *= mix(1.0, y - 2.0, n > 3.5);
    above *= mix(1.0, y - 3.0, n > 4.5);
    above *= mix(1.0, y - 4.0, n > 5.5);
    above *= mix(1.0, y - 5.0, n > 6.5);
    above *= mix(1.0, y - 6.0, n > 7.5);
    precise float below = abs(y * mix(1.0, y + 1.0, n < 0.5));
    return mix(above, below, n < 1.5);
}

//! function lx_lgamma_stirling
// log(gamma(a)) for a >= 8 by Stirling's series, from log(a).
float lx_lgamma_stirling(float a, float logarithm) {
    float u = 1.0 / mix(a, 1e30, a > 1e30);
    float correction = fma(fma(u * u, -0.002762651, 0.083333276), u, 0.4189385);
    precise float result = (a - 0.5) * (logarithm - 1.0) + correction;
    return result;
}

//! function lx_lgamma_reflected needs lx_log, lx_sin_polynomial, lx_cos_polynomial
// log|gamma(-a)| for a >= 1/2 or 0, from log(gamma(a)).
float lx_lgamma_reflected(float a, float opposite) {
    precise float distance = abs(a - roundEven(a));
    bool far = distance > 0.25;
    float angle = 3.1415927 * mix(distance, 0.5 - distance, far);
    float sine = mix(lx_sin_polynomial(angle), lx_cos_polynomial(angle), far);
    precise float reflected = -lx_log(a * (sine * 0.31830987)) - opposite;
    return mix(reflected, uintBitsToFloat(0x7f800000u), distance == 0.0 || a > 1e30);
}

//! function lx_lgamma needs lx_lgamma_near_two, lx_lgamma_steps, lx_lgamma_stirling, lx_lgamma_reflected, lx_log
// log|gamma(x)|; infinite at 0 and the negative whole numbers. From -1/2 downwards by reflection. One logarithm serves
// all numbers above.
float lx_lgamma(float x) {
    float a = abs(x);
    bool large = a >= 8.0;
    float y = mix(a, x, a < 0.5);
    float n = floor(y + 0.75);
    precise float t = y - n;
    float logarithm = lx_log(mix(lx_lgamma_steps(y, n), a, large));
    precise float moderate = lx_lgamma_near_two(t) + mix(logarithm, -logarithm, n < 1.5);
    float result = mix(moderate, lx_lgamma_stirling(a, logarithm), large);
    if (x <= -0.5 || a == 0.0) result = lx_lgamma_reflected(a, result);
    return mix(result, x, floatBitsToUint(a) > 0x7f800000u);
}

//! function lx_digamma_near_root
// digamma(1.4616321... + t) for 1 <= 1.46... + t <= 2.4.
float lx_digamma_near_root(float t) {
    float q = fma(-0.0020849665, t, 0.008729563);
    q = fma(q, t, -0.017083574);
    q = fma(q, t, 0.024168918);
    q = fma(q, t, -0.033280008);
    q = fma(q, t, 0.048562475);
    q = fma(q, t, -0.07213956);
    q = fma(q, t, 0.10782985);
    q = fma(q, t, -0.16394624);
    q = fma(q, t, 0.25850046);
    q = fma(q, t, -0.44276315);
    q = fma(q, t, 0.9676722);
    return q * t;
}

//! function lx_digamma_large needs lx_log
// digamma(a) for a >= 2.4 by its asymptotic series.
float lx_digamma_large(float a) {
    float u = 1.0 / mix(a, 1e30, a > 1e30);
    float z = u * u;
    float q = fma(-0.002254373, z, 0.003724204);
    q = fma(q, z, -0.008319326);
    q = fma(q, z, 0.08333306);
    precise float result = lx_log(a) - fma(u, q, 0.5) * u;
    return result;
}

//! function lx_digamma needs lx_digamma_near_root, lx_digamma_large, lx_divide, lx_sin_polynomial, lx_cos_polynomial
// The derivative of log|gamma(x)|; NaN at the negative whole numbers, infinite at zeros, with the other sign. Below 0
// by reflection: digamma(-a) = digamma(a) + 1/a + pi cot(pi a).
float lx_digamma(float x) {
    float a = abs(x);
    bool below_one = a < 1.0;
    precise float t = (a - mix(1.4616321, 0.46163213, below_one)) - 1.243815e-08;
    float value = mix(lx_digamma_near_root(t), lx_digamma_large(a), a >= 2.4);
    float inverse = lx_divide(1.0, a);
    precise float distance = a - roundEven(a);
    float size = abs(distance);
    bool far = size > 0.25;
    float angle = 3.1415927 * mix(size, 0.5 - size, far);
    float sine = lx_sin_polynomial(angle);
    float cosine = lx_cos_polynomial(angle);
    precise float cotangent = 3.1415927 * (mix(cosine, sine, far) / mix(sine, cosine, far));
    cotangent = mix(cotangent, -cotangent, distance < 0.0);
    precise float reflected = cotangent + (value + mix(inverse, 0.0, below_one));
    precise float direct = value - mix(0.0, inverse, below_one);
    uint bits = floatBitsToUint(x);
    float result = mix(direct, reflected, x < 0.0);
    result = mix(result, uintBitsToFloat(0x7fc00000u), bits >= 0xff800000u || (x < 0.0 && distance == 0.0));
    return mix(result, uintBitsToFloat(~bits & 0x80000000u | 0x7f800000u), a == 0.0);
}
//! end

void main() {}
