#version 460
// Hurwitz's zeta function and the derivatives of digamma in float32, computed in pairs (pair_arithmetic.glsl), by Euler
// and Maclaurin's formula (DLMF, dlmf.nist.gov, 25.11.5 with 2.10.1) after ten terms; DLMF 5.15.1 and 25.11.12.

// Stand-ins for functions of other files, so that this one compiles on its own; a shader gets the real ones.
vec2 lx_pair_sum(float a, float b) { return vec2(a + b, 0.0); }
vec2 lx_pair_product(float a, float b) { return vec2(a * b, 0.0); }
vec2 lx_pair_add(vec2 a, vec2 b) { return a + b; }
vec2 lx_pair_multiply(vec2 a, vec2 b) { return a * b; }
vec2 lx_pair_divide(vec2 a, vec2 b) { return a / b; }
vec2 lx_pair_log(vec2 x) { return log(x); }
vec2 lx_pair_exp(vec2 x, out int n) { n = 0; return exp(x); }
float lx_pair_value(vec2 a, int n) { return ldexp(a.x + a.y, n); }
float lx_scale(float x, int n) { return ldexp(x, n); }
float lx_stirling_rest(float a) { return a; }
float lx_digamma(float x) { return x; }

//! function lx_zeta_share needs lx_scale, lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log, lx_pair_exp
// q^s zeta(s, q): the sum of (1 + k / q)^-s over k from 0 on, for s > 1 and q > 0, given log(q), as what is returned times
// 2^shift. With q beyond the thousands of millions it is q / (s - 1) to rounding, unless s is so large that q^-s is 0.
vec2 lx_zeta_share(float s, float q, vec2 log_q, out int shift) {
    vec2 power = vec2(min(s, 1e15), 0.0);
    shift = 0;
    if (q > 1e12) {
        shift = 60;
        return lx_pair_divide(vec2(q * 8.6736174e-19, 0.0), lx_pair_sum(power.x, -1.0));
    }
    vec2 total = vec2(0.0);
    vec2 last = vec2(0.0);
    vec2 w = vec2(0.0);
    for (float k = 1.0; k < 10.5; k += 1.0) {
        total = lx_pair_add(total, last);
        w = lx_pair_sum(q, k);
        vec2 exponent = lx_pair_multiply(power, lx_pair_add(log_q, -lx_pair_log(w)));
        int n;
        last = lx_pair_exp(exponent, n);
        last *= lx_scale(1.0, max(n, -120));
    }
    // The rest from w = q + 10 on: w / (s - 1) + 1/2 + s / (12 w) - s (s + 1) (s + 2) / (720 w^3) + ...
    const float c[8] = float[8](0.083333336, -0.0013888889, 3.3068784e-05, -8.2671955e-07, 2.0876757e-08,
        -5.284190e-10, 1.3382537e-11, -3.3896804e-13);
    float inverse = 1.0 / w.x;
    float factor = power.x * inverse;
    float series = 0.5;
    for (int k = 0; k < 8; k++) {
        series += c[k] * factor;
        factor *= ((power.x + float(2 * k + 1)) * inverse) * ((power.x + float(2 * k + 2)) * inverse);
    }
    vec2 integral = lx_pair_divide(w, lx_pair_sum(power.x, -1.0));
    vec2 tail = lx_pair_multiply(last, lx_pair_add(integral, vec2(series, 0.0)));
    tail = mix(tail, vec2(0.0), bvec2(last.x < 1e-18));
    return lx_pair_add(vec2(1.0, 0.0), lx_pair_add(total, tail));
}

//! function lx_zeta needs lx_pair_multiply, lx_pair_log, lx_pair_exp, lx_pair_value, lx_zeta_share
// The sum of (k + q)^-s over k from 0 on, for s > 1 and q > 0; infinite at s = 1 and where a term is.
float lx_zeta(float s, float q) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool usable = s > 1.0 && q > 0.0 && floatBitsToUint(s) < 0x7f800000u && floatBitsToUint(q) < 0x7f800000u;
    float order = usable ? s : 2.0;
    float start = usable ? q : 1.0;
    vec2 log_start = lx_pair_log(vec2(start, 0.0));
    // Beyond this the power alone is told from infinity and zero.
    vec2 exponent = lx_pair_multiply(vec2(-min(order, 1e15), 0.0), log_start);
    int n, shift;
    vec2 power = lx_pair_exp(exponent, n);
    vec2 share = lx_zeta_share(order, start, log_start, shift);
    float result = lx_pair_value(lx_pair_multiply(power, share), n + shift);
    bool whole = q <= 0.0 && floor(q) == q;
    float edge = s >= 1.0 && (s == 1.0 || whole) ? infinite : uintBitsToFloat(0x7fc00000u);
    edge = mix(edge, 0.0, s > 1.0 && q == infinite);
    edge = mix(edge, mix(mix(0.0, 1.0, q == 1.0), infinite, q < 1.0), s == infinite && q > 0.0);
    return usable ? result : edge;
}

//! function lx_polygamma needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_log, lx_pair_exp, lx_pair_value, lx_stirling_rest, lx_zeta_share, lx_digamma
// The derivative of order n of digamma: -(-1)^n n! zeta(n + 1, x). NaN where n is not whole, and for
// x < 0, but for n = 0 and at the poles.
float lx_polygamma(float n, float x) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool usable = n >= 1.0 && x > 0.0 && floatBitsToUint(n) < 0x7f800000u && floatBitsToUint(x) < 0x7f800000u;
    float order = usable ? min(n, 1e15) : 1.0;
    float start = usable ? x : 1.0;
    vec2 log_start = lx_pair_log(vec2(start, 0.0));
    // n! = gamma(n + 9) / ((n + 1) ... (n + 8)) by Stirling's formula.
    vec2 end = lx_pair_sum(order, 9.0);
    // In two halves, of which those of large orders have each factor smaller by 2^30: neither overflows.
    bool large = order > 1e4;
    float unit = large ? 9.3132257e-10 : 1.0;
    vec2 low = vec2(1.0, 0.0);
    vec2 high = low;
    for (float k = 1.0; k < 4.5; k += 1.0) {
        low = lx_pair_multiply(low, unit * lx_pair_sum(order, k));
        high = lx_pair_multiply(high, unit * lx_pair_sum(order, k + 4.0));
    }
    vec2 log_end = lx_pair_log(end);
    vec2 exponent = lx_pair_multiply(vec2(order, 0.0), lx_pair_add(log_end, -log_start));
    exponent = lx_pair_add(exponent, lx_pair_multiply(vec2(8.5, 0.0), log_end));
    vec2 log_product = lx_pair_add(lx_pair_log(low), lx_pair_log(high));
    if (large)
        log_product = lx_pair_add(log_product, vec2(166.35531616210938, 7.1722774919180665e-06));
    exponent = lx_pair_add(exponent, -lx_pair_add(log_product, log_start));
    exponent = lx_pair_add(exponent, -end);
    exponent = lx_pair_add(exponent, vec2(0.9189385, 1.5634177e-08));
    exponent = lx_pair_add(exponent, vec2(lx_stirling_rest(end.x), 0.0));
    int scale, shift;
    vec2 power = lx_pair_exp(exponent, scale);
    vec2 share = lx_zeta_share(order + 1.0, start, log_start, shift);
    float result = lx_pair_value(lx_pair_multiply(power, share), scale + shift);
    bool pole = n >= 1.0 && x <= 0.0 && floor(x) == x;
    float edge = mix(uintBitsToFloat(0x7fc00000u), mix(0.0, infinite, pole), pole || n >= 1.0 && x == infinite);
    result = usable ? result : edge;
    bool even = n - 2.0 * floor(0.5 * n) == 0.0;
    result = mix(result, -result, even);
    result = mix(uintBitsToFloat(0x7fc00000u), result, floor(n) == n);
    return n == 0.0 ? lx_digamma(x) : result;
}
//! end

void main() {}
