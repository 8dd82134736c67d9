#version 460
// Incomplete gamma functions and exponential integrals in float32, computed in pairs (pair_arithmetic.glsl).
// Formulas: DLMF (dlmf.nist.gov) 6.6, 6.12, 8.7, 8.9, 8.12 and 8.19, with the uniform expansion of Temme, "The
// asymptotic expansion of the incomplete gamma functions" (1979). Coefficients are our own: Taylor's of the expansion,
// Chebyshev's fits for the rest.

// Stand-ins for functions of other files, so that this one compiles on its own; a shader gets the real ones.
vec2 lx_pair_sum(float a, float b) { return vec2(a + b, 0.0); }
vec2 lx_pair_product(float a, float b) { return vec2(a * b, 0.0); }
vec2 lx_pair_add(vec2 a, vec2 b) { return a + b; }
vec2 lx_pair_multiply(vec2 a, vec2 b) { return a * b; }
vec2 lx_pair_divide(vec2 a, vec2 b) { return a / b; }
vec2 lx_pair_log(vec2 x) { return log(x); }
vec2 lx_pair_log_bend(vec2 m) { return m - log(1.0 + m); }
vec2 lx_pair_exp(vec2 x, out int n) { n = 0; return exp(x); }
vec2 lx_pair_expm1(vec2 x, out int n) { n = 0; return exp(x) - 1.0; }
float lx_pair_value(vec2 a, int n) { return ldexp(a.x + a.y, n); }
float lx_scale(float x, int n) { return ldexp(x, n); }

//! function lx_stirling_rest
// What (a - 1/2) log(a) - a + log(2 pi) / 2 lacks of log(gamma(a)), for a >= 8.
float lx_stirling_rest(float a) {
    float u = 1.0 / mix(a, 1e18, a > 1e18);
    float z = u * u;
    float q = fma(-0.0005952381, z, 0.0007936508);
    q = fma(q, z, -0.0027777778);
    q = fma(q, z, 0.083333336);
    return q * u;
}

//! function lx_gamma_weight needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_log, lx_pair_exp, lx_stirling_rest
// x^a e^-x / gamma(a + 1) = what is returned times 2^n, for 0 < a <= 1e6 and x > 0. Stirling's formula at a + 9, and
// the recurrence from there.
vec2 lx_gamma_weight(float a, float x, out int n) {
    vec2 end = lx_pair_sum(a, 9.0);
    vec2 product = lx_pair_sum(a, 1.0);
    for (float k = 2.0; k < mix(8.5, 0.0, a > 1e12); k += 1.0)
        product = lx_pair_multiply(product, lx_pair_sum(a, k));
    vec2 log_end = lx_pair_log(end);
    // a (log x - log end) + (9 - 1/2) (-log end) + end - x - ...
    vec2 ratio = lx_pair_add(lx_pair_log(vec2(x, 0.0)), -log_end);
    vec2 exponent = lx_pair_multiply(vec2(a, 0.0), ratio);
    exponent = lx_pair_add(exponent, lx_pair_add(lx_pair_sum(a, -x), vec2(9.0, 0.0)));
    exponent = lx_pair_add(exponent, lx_pair_multiply(vec2(-8.5, 0.0), log_end));
    exponent = lx_pair_add(exponent, vec2(-0.9189385, -1.5634177e-08));
    exponent = lx_pair_add(exponent, vec2(-lx_stirling_rest(end.x), 0.0));
    return lx_pair_multiply(lx_pair_exp(exponent, n), product);
}

//! function lx_gamma_series needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide
// 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..., for 0 < x <= a + 2 and a <= 20, or x <= 0.7 a.
vec2 lx_gamma_series(float a, float x) {
    vec2 total = vec2(1.0, 0.0);
    vec2 term = total;
    for (float k = 1.0; k < 200.0 && term.x > total.x * 2e-10; k += 1.0) {
        term = lx_pair_divide(lx_pair_multiply(term, vec2(x, 0.0)), lx_pair_sum(a, k));
        total = lx_pair_add(total, term);
    }
    return total;
}

//! function lx_gamma_fraction needs lx_pair_sum, lx_pair_add, lx_pair_divide, lx_pair_multiply
// Gamma(a, x) e^x x^-a by Legendre's continued fraction, for x >= 2, x > a and, from a = 20 on, x >= 1.3 a.
vec2 lx_gamma_fraction(float a, float x) {
    vec2 ahead = lx_pair_sum(x, -a);
    float last = 16.0 + floor(12.0 / x);
    vec2 tail = lx_pair_add(ahead, vec2(last + last + 1.0, 0.0));
    for (float n = last; n > 0.5; n -= 1.0) {
        vec2 above = lx_pair_multiply(vec2(n, 0.0), lx_pair_sum(a, -n));
        tail = lx_pair_add(lx_pair_add(ahead, vec2(n + n - 1.0, 0.0)), lx_pair_divide(above, tail));
    }
    return lx_pair_divide(vec2(1.0, 0.0), tail);
}

//! function lx_log_gamma_slope needs lx_pair_add, lx_pair_multiply
// log(gamma(1 + a)) / a for 0 <= a <= 1.
vec2 lx_log_gamma_slope(float a) {
    const vec2 c[14] = vec2[14](
        vec2(0.00050773943, -2.8717712e-11), vec2(-0.00411639, -2.2534381e-10), vec2(0.01567196, -9.2360797e-10),
        vec2(-0.037857946, 1.4824934e-09), vec2(0.0668264, 2.9309608e-09), vec2(-0.09531017, 2.2558178e-09),
        vec2(0.11975654, -1.3580349e-09), vec2(-0.14255632, -7.1655037e-09), vec2(0.16928725, 3.4201737e-09),
        vec2(-0.20735337, 2.464649e-09), vec2(0.27057847, 3.531674e-09), vec2(-0.40068555, 3.501037e-09),
        vec2(0.822467, 2.9745473e-09), vec2(-0.5772157, 6.641222e-09));
    vec2 total = c[0];
    for (int k = 1; k < 14; k++)
        total = lx_pair_add(c[k], lx_pair_multiply(total, vec2(a, 0.0)));
    return total;
}

//! function lx_gamma_corner needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log, lx_pair_exp, lx_pair_expm1, lx_log_gamma_slope, lx_scale
// The lower integral, or the upper one, for a < 1 and x < 2, as what is returned times 2^n. With
// u = a log(x) - log(gamma(1 + a)) the lower one is e^u (1 + a sum), and the sum that of (-x)^k / (k! (a + k)), k >= 1.
vec2 lx_gamma_corner(float a, float x, bool upper, out int n) {
    vec2 slope = lx_pair_add(lx_pair_log(vec2(x, 0.0)), -lx_log_gamma_slope(a));
    vec2 u = lx_pair_multiply(vec2(a, 0.0), slope);
    vec2 sum = vec2(0.0);
    vec2 power = vec2(1.0, 0.0);
    for (float k = 1.0; k < 40.0 && abs(power.x) > 1e-12; k += 1.0) {
        power = lx_pair_divide(lx_pair_multiply(power, vec2(-x, 0.0)), vec2(k, 0.0));
        sum = lx_pair_add(sum, lx_pair_divide(power, lx_pair_sum(a, k)));
    }
    vec2 rest = lx_pair_multiply(vec2(a, 0.0), sum);
    int grown_n;
    vec2 grown = lx_pair_expm1(u, grown_n);
    int power_n;
    vec2 by_power = lx_pair_multiply(lx_pair_exp(u, power_n), lx_pair_add(vec2(upper ? 0.0 : 1.0, 0.0), rest));
    n = power_n;
    if (!upper)
        return by_power;
    n = 0;
    float scale = lx_scale(1.0, power_n);
    return lx_pair_add(-grown * lx_scale(1.0, grown_n), -by_power * scale);
}

//! function lx_pair_erfcx needs lx_pair_add, lx_pair_multiply, lx_pair_divide
// e^(t^2) erfc(t) for 0 <= t <= 10.7: 1 / (t + 1/2) times a polynomial in (t - 2) / (t + 2).
vec2 lx_pair_erfcx(vec2 t) {
    const vec2 c[15] = vec2[15](
        vec2(-3.924492e-06, 6.199991e-14), vec2(-1.4155501e-05, -3.0898014e-13), vec2(-1.6625471e-06, -4.4727355e-14),
        vec2(7.249972e-05, 5.703425e-13), vec2(0.00010306821, -8.6867785e-13), vec2(-0.00022602128, 5.5279305e-12),
        vec2(-0.0007282826, -2.4967039e-11), vec2(0.00063542597, -7.7753845e-12), vec2(0.004361303, 2.121215e-10),
        vec2(-0.0040169796, 8.755572e-11), vec2(-0.02711, 6.861905e-11), vec2(0.08202564, -1.2056945e-09),
        vec2(-0.083015196, -2.7791869e-09), vec2(-0.046381913, -1.4279068e-10), vec2(0.6384892, 4.0120733e-09));
    vec2 u = lx_pair_divide(lx_pair_add(t, vec2(-2.0, 0.0)), lx_pair_add(t, vec2(2.0, 0.0)));
    vec2 total = c[0];
    for (int k = 1; k < 15; k++)
        total = lx_pair_add(c[k], lx_pair_multiply(total, u));
    return lx_pair_divide(total, lx_pair_add(t, vec2(0.5, 0.0)));
}

//! function lx_gamma_uniform needs lx_pair_sum, lx_pair_product, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_exp, lx_pair_erfcx, lx_pair_log_bend
// The smaller of both integrals for a >= 20 and |x - a| <= 0.3 a, as what is returned times 2^n: with m = (x - a) / a and
// h^2 / 2 = m - log(1 + m) it is e^(-a h^2 / 2) (erfcx(|h| sqrt(a / 2)) / 2 +- S / sqrt(2 pi a)), S being the sum of
// c_k(h) a^-k.
vec2 lx_gamma_uniform(float a, float x, out int n) {
    vec2 ahead = lx_pair_sum(x, -a);
    vec2 bend = lx_pair_log_bend(lx_pair_divide(ahead, vec2(a, 0.0)));
    vec2 exponent = lx_pair_multiply(vec2(a, 0.0), bend);
    exponent = mix(exponent, vec2(110.0, 0.0), bvec2(exponent.x > 110.0));

    float root = sqrt(exponent.x);
    vec2 square = lx_pair_product(root, root);
    precise float rest = ((exponent.x - square.x) - square.y) + exponent.y;
    vec2 t = lx_pair_sum(root, mix(0.5 * rest / root, 0.0, root == 0.0));

    bool below = ahead.x < 0.0;
    precise float size = root * sqrt(2.0 / a);
    float h = mix(size, -size, below);
    float inverse = 1.0 / a;
    float s = fma(fma(fma(fma(fma(-2.1854485e-06, h, 3.9192633e-05), h, -0.00017875514), h, 0.00035273368), h,
        0.0011574074), h, -0.014814815);
    s = fma(fma(s, h, 0.083333336), h, -0.33333334);
    float s_1 = fma(fma(fma(fma(fma(-4.0187757e-07, h, 0.00020576132), h, -0.0009902263), h, 0.0026455026), h,
        -0.0034722222), h, -0.0018518518);
    float s_2 = fma(fma(fma(2.0093878e-06, h, 0.00077160494), h, -0.002681327), h, 0.004133598);
    float s_3 = fma(fma(-0.0004691895, h, 0.00022947209), h, 0.00064943417);
    s = fma(fma(fma(s_3, inverse, s_2), inverse, s_1), inverse, s);
    precise float share = s * sqrt(inverse) * 0.3989423;
    vec2 half_tail = 0.5 * lx_pair_erfcx(t);
    vec2 factor = lx_pair_add(half_tail, vec2(mix(share, -share, below), 0.0));
    return lx_pair_multiply(lx_pair_exp(-exponent, n), factor);
}

//! function lx_gamma_integral needs lx_pair_add, lx_pair_multiply, lx_pair_value, lx_gamma_weight, lx_gamma_series, lx_gamma_fraction, lx_gamma_corner, lx_gamma_uniform
// The regularized incomplete gamma functions: the lower integral, or the upper one.
float lx_gamma_integral(float a, float x, bool upper) {
    bool usable = a > 0.0 && x > 0.0 && max(floatBitsToUint(a), floatBitsToUint(x)) < 0x7f800000u;
    // Both at once by 2^20 where one is huge: only whether x is below a matters there, and no quotient may be denormal.
    float unit = usable && max(a, x) > 1e30 ? 9.5367432e-07 : 1.0;
    // The upper integral is a times one of x where a is tiny: by 2^40, lest it be denormal on the way.
    bool tiny = usable && upper && a < 1e-30;
    float p = usable ? (tiny ? 1.0995116e+12 : unit) * a : 1.0;
    float y = usable ? unit * x : 1.0;
    int n = 0;
    vec2 found;
    bool is_upper = upper;
    if (p >= 20.0 && abs(y - p) <= 0.3 * p) {
        found = lx_gamma_uniform(p, y, n);
        is_upper = y >= p;
    } else if (p < 1.0 && y < 2.0) {
        found = lx_gamma_corner(p, y, upper, n);
    } else {
        is_upper = y > p && y >= 2.0;
        if (p > 1e4 || y > p + 1e4) {
            found = vec2(0.0);
        } else {
            vec2 weight = lx_gamma_weight(p, y, n);
            vec2 rest = is_upper ? lx_pair_multiply(vec2(p, 0.0), lx_gamma_fraction(p, y)) : lx_gamma_series(p, y);
            found = lx_pair_multiply(weight, rest);
        }
    }
    n -= mix(0, 40, tiny);
    float whole = lx_pair_value(found, n);
    if (is_upper != upper) {
        vec2 part = vec2(whole, lx_pair_value(vec2(found.y + (found.x - (found.x + found.y)), 0.0), n));
        whole = lx_pair_value(lx_pair_add(vec2(1.0, 0.0), -part), 0);
    }
    bool nothing = x == 0.0 && a > 0.0 || a == uintBitsToFloat(0x7f800000u) && x >= 0.0 && x < a;
    bool all = a == 0.0 && x > 0.0 || x == uintBitsToFloat(0x7f800000u) && a >= 0.0 && a < x;
    float edge = nothing || all ? float(nothing == upper) : uintBitsToFloat(0x7fc00000u);
    return usable ? whole : edge;
}

//! function lx_gammainc needs lx_gamma_integral
// The regularized lower incomplete gamma function.
float lx_gammainc(float a, float x) { return lx_gamma_integral(a, x, false); }

//! function lx_gammaincc needs lx_gamma_integral
// The regularized upper incomplete gamma function.
float lx_gammaincc(float a, float x) { return lx_gamma_integral(a, x, true); }
//! end

void main() {}
