#version 460
// Exponential integrals in float32, computed in pairs (pair_arithmetic.glsl).
// Formulas: DLMF (dlmf.nist.gov) 6.6.1, 6.12.2, 8.19.8 and 8.19.17. The polynomial is our own Chebyshev fit.

// Stand-ins for functions of other files, so that this one compiles on its own; a shader gets the real ones.
vec2 lx_pair_sum(float a, float b) { return vec2(a + b, 0.0); }
vec2 lx_pair_settled(float a, float b) { return vec2(a + b, 0.0); }
vec2 lx_pair_add(vec2 a, vec2 b) { return a + b; }
vec2 lx_pair_multiply(vec2 a, vec2 b) { return a * b; }
vec2 lx_pair_divide(vec2 a, vec2 b) { return a / b; }
vec2 lx_pair_log(vec2 x) { return log(x); }
vec2 lx_pair_exp(vec2 x, out int n) { n = 0; return exp(x); }
float lx_pair_value(vec2 a, int n) { return ldexp(a.x + a.y, n); }
vec2 lx_gamma_fraction(float a, float x) { return vec2(x, 0.0); }

//! function lx_expn_small needs lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log
// E_n(x) for 0 < x < 2 and whole n >= 1 by its power series, in which the term of x^(n - 1) has a logarithm.
vec2 lx_expn_small(float n, float x) {
    vec2 total = vec2(0.0);
    vec2 power = vec2(1.0, 0.0);
    vec2 harmonic = lx_pair_add(vec2(-0.5772157, 6.637774e-09), -lx_pair_log(vec2(x, 0.0)));
    for (float m = 0.0; m < 40.0 && abs(power.x) > 1e-13; m += 1.0) {
        float distance = n - 1.0 - m;
        vec2 divisor = vec2(mix(distance, 1.0, distance == 0.0), 0.0);
        vec2 factor = distance == 0.0 ? harmonic : lx_pair_divide(vec2(1.0, 0.0), divisor);
        total = lx_pair_add(total, lx_pair_multiply(power, factor));
        vec2 inverse = lx_pair_divide(vec2(1.0, 0.0), vec2(m + 1.0, 0.0));
        harmonic = lx_pair_add(harmonic, inverse);
        power = lx_pair_multiply(lx_pair_multiply(power, vec2(-x, 0.0)), inverse);
    }
    return total;
}

//! function lx_expn needs lx_pair_divide, lx_pair_multiply, lx_pair_exp, lx_pair_value, lx_expn_small, lx_gamma_fraction
// The exponential integral E_n(x) for whole n >= 0 and x >= 0, else NaN. E_0(x) = e^-x / x, and with n in the thousands of millions
// E_n(x) = e^-x / (x + n) to rounding.
float lx_expn(float n, float x) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool usable = n >= 0.0 && x > 0.0 && n < infinite;
    float y = usable ? min(x, 200.0) : 1.0;
    float order = usable ? n : 1.0;
    bool huge = order > 1e9;
    vec2 found;
    int scale = 0;
    if (order >= 1.0 && y < 2.0 && !huge) {
        found = lx_expn_small(order, y);
    } else {
        // Numbers far from 1 are brought nearer by a power of two.
        bool far = huge ? order > 1e30 : y < 1e-30;
        float factor = mix(1.0, huge ? 8.6736174e-19 : 1.1529215e+18, far);
        vec2 fraction;
        if (order >= 1.0 && !huge)
            fraction = lx_gamma_fraction(1.0 - order, y);
        else
            fraction = lx_pair_divide(vec2(1.0, 0.0), (huge ? vec2(order, y) : vec2(y, 0.0)) * factor);
        found = lx_pair_multiply(lx_pair_exp(vec2(-y, 0.0), scale), fraction);
        scale += mix(0, huge ? -60 : 60, far);
    }
    float result = lx_pair_value(found, scale);
    float at_zero = n > 1.0 ? 1.0 / (n - 1.0) : infinite;
    result = mix(result, at_zero, x == 0.0);
    result = mix(result, 0.0, n == infinite);
    bool defined = n >= 0.0 && x >= 0.0 && floor(n) == n;
    return mix(uintBitsToFloat(0x7fc00000u), result, defined);
}

//! function lx_expi_positive needs lx_pair_settled, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log, lx_pair_exp, lx_pair_value
// Ei(x) for x > 0: a polynomial around its zero, a power series up to 24, and the asymptotic series beyond.
float lx_expi_positive(float x) {
    if (abs(x - 0.3875) < 0.115) {
        precise float t = ((x - 0.37250742) + 1.2381094e-08) + 2.0890442e-16;
        float q = fma(690.8329, t, -382.8264);
        q = fma(q, t, 147.4473);
        q = fma(q, t, -62.03968);
        q = fma(q, t, 27.857367);
        q = fma(q, t, -12.97064);
        q = fma(q, t, 6.52244);
        q = fma(q, t, -3.2816072);
        q = fma(q, t, 3.8962157);
        return q * t;
    }
    if (x < 24.0) {
        vec2 total = lx_pair_add(vec2(0.5772157, -6.637774e-09), lx_pair_log(vec2(x, 0.0)));
        vec2 power = vec2(1.0, 0.0);
        for (float k = 1.0; k < 90.0 && power.x > abs(total.x) * 1e-11; k += 1.0) {
            power = lx_pair_divide(lx_pair_multiply(power, vec2(x, 0.0)), vec2(k, 0.0));
            total = lx_pair_add(total, lx_pair_divide(power, vec2(k, 0.0)));
        }
        return lx_pair_value(total, 0);
    }
    float y = min(x, 200.0);
    float inverse = 1.0 / y;
    float series = 0.0;
    for (float k = 24.0; k > 1.5; k -= 1.0)
        series = k * inverse * (1.0 + series);
    int n;
    vec2 power = lx_pair_divide(lx_pair_exp(vec2(y, 0.0), n), vec2(y, 0.0));
    precise float rest = inverse * (1.0 + series);
    return lx_pair_value(lx_pair_multiply(power, lx_pair_settled(1.0, rest)), n);
}

//! function lx_expi needs lx_expi_positive, lx_expn
// The exponential integral Ei(x), below 0 as -E_1(-x).
float lx_expi(float x) {
    uint bits = floatBitsToUint(x);
    float a = abs(x);
    float held = mix(a, 1.0, a == 0.0 || (bits & 0x7fffffffu) >= 0x7f800000u);
    float result = x < 0.0 ? -lx_expn(1.0, held) : lx_expi_positive(held);
    result = mix(result, uintBitsToFloat(0xff800000u), a == 0.0);
    result = mix(result, -0.0, bits == 0xff800000u);
    return mix(result, x, bits == 0x7f800000u || (bits & 0x7fffffffu) > 0x7f800000u);
}
//! end

void main() {}
