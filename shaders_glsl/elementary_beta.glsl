#version 460
// The regularized incomplete beta function in float32, computed in pairs (pair_arithmetic.glsl): DLMF (dlmf.nist.gov)
// 8.17.7 and 8.17.22, Stirling's formula for the factor before them, and Gauss and Legendre's rule if both parameters
// are large.

// Stand-ins for functions of other files, so that this one compiles on its own; a shader gets the real ones.
float lx_exp(float x) { return exp(x); }
float lx_stirling_rest(float a) { return a; }
float lx_scale(float x, int n) { return ldexp(x, n); }
vec2 lx_pair_sum(float a, float b) { return vec2(a + b, 0.0); }
vec2 lx_pair_add(vec2 a, vec2 b) { return a + b; }
vec2 lx_pair_multiply(vec2 a, vec2 b) { return a * b; }
vec2 lx_pair_divide(vec2 a, vec2 b) { return a / b; }
vec2 lx_pair_log(vec2 x) { return log(x); }
vec2 lx_pair_log1p(vec2 x) { return log(1.0 + x); }
vec2 lx_pair_log_bend(vec2 m) { return m - log(1.0 + m); }
vec2 lx_pair_exp(vec2 x, out int n) { n = 0; return exp(x); }
vec2 lx_pair_expm1(vec2 x, out int n) { n = 0; return exp(x) - 1.0; }
float lx_pair_value(vec2 a, int n) { return ldexp(a.x + a.y, n); }
vec2 lx_log_gamma_slope(float a) { return vec2(a); }

//! function lx_beta_weight needs lx_pair_sum, lx_pair_add, lx_pair_log, lx_pair_multiply, lx_stirling_rest, lx_pair_divide, lx_pair_log_bend, lx_pair_log1p, lx_pair_exp
// x^a y^b gamma(a + b) / (gamma(a + 1) gamma(b)) with x + y = 1, as what is returned times 2^n. Stirling's formula, at
// arguments raised by 9 where they are small; of those that are not, with S = a + b, the logarithms of x S / a and y S / b.
vec2 lx_beta_weight(float a, float b, vec2 x, vec2 y, vec2 ahead, out int n) {
    vec2 total = lx_pair_sum(a, b);
    bool raised = total.x < 20.0;
    bool both = min(a, b) >= 20.0;
    vec2 end = lx_pair_add(total, vec2(mix(0.0, 9.0, raised), 0.0));
    vec2 log_end = lx_pair_log(end);
    vec2 exponent = lx_pair_multiply(vec2(mix(-0.5, 8.5, raised), 0.0), log_end);
    exponent = lx_pair_add(exponent, vec2(-0.9189385, -1.5634177e-08));
    float rests = lx_stirling_rest(end.x);
    float nines = mix(0.0, -9.0, raised);
    vec2 factor = vec2(1.0, 0.0);
    vec2 divisor = factor;
    if (raised) {
        divisor = total;
        for (float k = 1.0; k < 8.5; k += 1.0)
            divisor = lx_pair_multiply(divisor, lx_pair_add(total, vec2(k, 0.0)));
    }
    for (int side = 0; side < 2; side++) {
        float z = side == 0 ? a : b;
        vec2 u = side == 0 ? x : y;
        bool lifted = z < 20.0;
        vec2 place = lx_pair_sum(z, mix(0.0, 9.0, lifted));
        vec2 log_place = lx_pair_log(place);
        vec2 m = lx_pair_divide(side == 0 ? ahead : -ahead, vec2(z, 0.0));
        vec2 logarithm;
        if (both)
            logarithm = -lx_pair_log_bend(m);
        else if (!lifted && abs(m.x) < 0.4)
            logarithm = lx_pair_log1p(m);
        else
            logarithm = lx_pair_add(lx_pair_log(u), lx_pair_add(log_end, -log_place));
        bool far = z > 1e4 && abs(logarithm.x) > 1e6 / z;
        exponent = lx_pair_add(exponent, far ? vec2(-1e6, 0.0) : lx_pair_multiply(vec2(z, 0.0), logarithm));
        exponent = lx_pair_add(exponent, lx_pair_multiply(vec2(mix(0.5, -8.5, lifted), 0.0), log_place));
        rests -= lx_stirling_rest(place.x);
        nines += mix(0.0, 9.0, lifted);
        if (lifted) {
            for (float k = 1.0; k < 8.5; k += 1.0)
                factor = lx_pair_multiply(factor, lx_pair_sum(z, k));
        }
        if (lifted && side == 1)
            factor = lx_pair_multiply(factor, vec2(z, 0.0));
        if (!lifted && side == 0)
            exponent = lx_pair_add(exponent, -log_place);
    }
    exponent = lx_pair_add(lx_pair_add(exponent, vec2(nines, 0.0)), vec2(rests, 0.0));
    return lx_pair_multiply(lx_pair_exp(exponent, n), lx_pair_divide(factor, divisor));
}

//! function lx_beta_fraction needs lx_pair_sum, lx_pair_multiply, lx_pair_divide, lx_pair_add
// The continued fraction 8.17.22, for x <= (a + 1) / (a + b + 2), of which not both a and b are beyond some hundreds.
vec2 lx_beta_fraction(float a, float b, vec2 x) {
    vec2 one = vec2(1.0, 0.0);
    vec2 total = lx_pair_sum(a, b);
    vec2 tail = one;
    for (float k = 10.0 + floor(min(50.0, 2.0 * sqrt(min(a, 1e4)))); k > 0.5; k -= 1.0) {
        vec2 twice = lx_pair_sum(a, k + k);
        vec2 even = lx_pair_multiply(lx_pair_divide(lx_pair_multiply(x, lx_pair_sum(b, -k)), twice),
            lx_pair_divide(vec2(k, 0.0), lx_pair_add(twice, vec2(-1.0, 0.0))));
        vec2 odd = lx_pair_multiply(lx_pair_divide(lx_pair_multiply(x, lx_pair_add(total, vec2(k, 0.0))), twice),
            lx_pair_divide(lx_pair_sum(a, k), lx_pair_add(twice, one)));
        tail = lx_pair_add(one, lx_pair_divide(even, lx_pair_add(one, -lx_pair_divide(odd, tail))));
    }
    vec2 first = lx_pair_divide(lx_pair_multiply(x, total), lx_pair_sum(a, 1.0));
    return lx_pair_divide(one, lx_pair_add(one, -lx_pair_divide(first, tail)));
}

//! function lx_beta_quadrature needs lx_pair_divide, lx_pair_add, lx_pair_multiply, lx_pair_sum, lx_pair_log_bend, lx_exp
// a / (x^a y^b) times the integral of t^(a - 1) (1 - t)^(b - 1) up to x, for large a and b and x below the mean: with
// t = x (1 - s) the integrand is e^-(c s + (a - 1) d(-s) + (b - 1) d(x s / y)) / y, d(m) = m - log(1 + m).
vec2 lx_beta_quadrature(float a, float b, vec2 x, vec2 y, vec2 ahead) {
    const vec2 nodes[8] = vec2[8](
        vec2(0.09501251, 0.1894506), vec2(0.28160354, 0.18260342),
        vec2(0.45801678, 0.16915652), vec2(0.61787623, 0.14959599),
        vec2(0.7554044, 0.12462897), vec2(0.8656312, 0.09515851),
        vec2(0.944575, 0.062253524), vec2(0.9894009, 0.02715246));
    vec2 ratio = lx_pair_divide(x, y);
    vec2 slope = lx_pair_divide(lx_pair_add(lx_pair_add(x, -y), -ahead), y);
    float end = sqrt(44.0 / (a + b * ratio.x * ratio.x));
    end = min(end, 22.0 / max(slope.x, 1.0));
    vec2 total = vec2(0.0);
    for (int k = 0; k < 16; k++) {
        vec2 node = nodes[k >> 1];
        float s = end * ((k & 1) == 0 ? 0.5 - 0.5 * node.x : 0.5 + 0.5 * node.x);
        vec2 bends = lx_pair_multiply(lx_pair_sum(a, -1.0), lx_pair_log_bend(vec2(-s, 0.0)));
        vec2 other = lx_pair_log_bend(lx_pair_multiply(ratio, vec2(s, 0.0)));
        bends = lx_pair_add(bends, lx_pair_multiply(lx_pair_sum(b, -1.0), other));
        vec2 e = lx_pair_add(lx_pair_multiply(slope, vec2(s, 0.0)), bends);
        float power = lx_exp(-e.x);
        vec2 share = lx_pair_multiply(vec2(node.y, 0.0), vec2(power, -power * e.y));
        total = lx_pair_add(total, share);
    }
    return lx_pair_multiply(lx_pair_multiply(total, vec2(0.5 * end, 0.0)), lx_pair_divide(vec2(a, 0.0), y));
}

//! function lx_beta_corner needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_log, lx_log_gamma_slope, lx_pair_log1p, lx_pair_divide, lx_pair_expm1, lx_pair_exp, lx_pair_value, lx_scale
// 1 - I_y(b, a) for b < 1 and y below the mean, by 8.17.7: with I_y(b, a) = e^u (1 + b sum), the sum that of
// (1 - a) ... (k - a) y^k / (k! (b + k)), it is -(e^u - 1) - e^u b sum.
float lx_beta_corner(float a, float b, vec2 y) {
    // log(gamma(a + b) / gamma(a)) / b, from a + 9 on by Stirling's formula.
    vec2 step = vec2(b, 0.0);
    bool raised = a < 20.0;
    vec2 base = lx_pair_sum(a, mix(0.0, 9.0, raised));
    vec2 end = lx_pair_add(base, step);
    vec2 u = lx_pair_multiply(step, lx_pair_add(lx_pair_log(end), lx_pair_add(lx_pair_log(y), -lx_log_gamma_slope(b))));
    vec2 by_base = lx_pair_multiply(lx_pair_add(base, vec2(-0.5, 0.0)), lx_pair_log1p(lx_pair_divide(step, base)));
    u = lx_pair_add(u, lx_pair_add(by_base, -step));
    float p = 1.0 / base.x;
    float q = 1.0 / end.x;
    float cubes = (p * p + p * q) + q * q;
    u = lx_pair_add(u, vec2(-b * p * q * (0.083333336 - 0.0027777778 * cubes + 0.0039682542 * p * p * q * q), 0.0));
    for (float k = 0.0; k < mix(0.0, 8.5, raised); k += 1.0)
        u = lx_pair_add(u, -lx_pair_log1p(lx_pair_divide(step, lx_pair_sum(a, k))));
    vec2 sum = vec2(0.0);
    vec2 power = vec2(1.0, 0.0);
    for (float k = 1.0; k < 120.0 && abs(power.x) > 1e-11; k += 1.0) {
        power = lx_pair_multiply(lx_pair_multiply(power, y), lx_pair_divide(lx_pair_sum(k, -a), vec2(k, 0.0)));
        sum = lx_pair_add(sum, lx_pair_divide(power, lx_pair_sum(b, k)));
    }
    int n, m;
    vec2 grown = lx_pair_expm1(u, n);
    vec2 rest = lx_pair_multiply(lx_pair_exp(u, m), lx_pair_multiply(step, sum));
    return lx_pair_value(lx_pair_add(-grown * lx_scale(1.0, n), -rest * lx_scale(1.0, clamp(m, -120, 120))), 0);
}

//! function lx_betainc needs lx_pair_sum, lx_beta_corner, lx_pair_add, lx_pair_multiply, lx_beta_weight, lx_beta_quadrature, lx_beta_fraction, lx_pair_value
// The regularized incomplete beta function; NaN unless a and b are positive and 0 <= x <= 1.
float lx_betainc(float a, float b, float x) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool positive = a > 0.0 && b > 0.0 && a < infinite && b < infinite;
    bool usable = positive && x > 0.0 && x < 1.0;
    float p = usable ? a : 1.0;
    float q = usable ? b : 1.0;
    float t = usable ? x : 0.25;
    bool swapped = t > (p + 1.0) / (p + q + 2.0);
    vec2 low = vec2(t, 0.0);
    vec2 high = lx_pair_sum(1.0, -t);
    float result;
    if (swapped && q < 1.0) {
        result = lx_beta_corner(p, q, high);
    } else {
        vec2 ahead = lx_pair_add(lx_pair_multiply(low, vec2(q, 0.0)), -lx_pair_multiply(high, vec2(p, 0.0)));
        ahead = mix(ahead, -ahead, bvec2(swapped));
        float first = mix(p, q, swapped);
        float second = mix(q, p, swapped);
        vec2 inside = mix(low, high, bvec2(swapped));
        vec2 outside = mix(high, low, bvec2(swapped));
        int n;
        vec2 weight = lx_beta_weight(first, second, inside, outside, ahead, n);
        vec2 rest = min(p, q) > 300.0
            ? lx_beta_quadrature(first, second, inside, outside, ahead)
            : lx_beta_fraction(first, second, inside);
        vec2 found = lx_pair_multiply(weight, rest);
        result = lx_pair_value(found, n);
        float low_part = lx_pair_value(vec2(found.y + (found.x - (found.x + found.y)), 0.0), n);
        if (swapped)
            result = lx_pair_value(lx_pair_add(vec2(1.0, 0.0), -vec2(result, low_part)), 0);
    }
    float edge = mix(uintBitsToFloat(0x7fc00000u), x, positive && (x == 0.0 || x == 1.0));
    return usable ? result : edge;
}
//! end

void main() {}
