#version 460
// The gamma function, the beta function, Pochhammer's symbol, Box and Cox's power and a relative entropy in float32,
// computed in pairs (pair_arithmetic.glsl) by Stirling's formula and the recurrence: DLMF (dlmf.nist.gov) 5.5.1, 5.5.3,
// 5.11.1 and 5.12.1.

// Stand-ins for functions of other files, so that this one compiles on its own; a shader gets the real ones.
vec2 lx_pair_sum(float a, float b) { return vec2(a + b, 0.0); }
vec2 lx_pair_add(vec2 a, vec2 b) { return a + b; }
vec2 lx_pair_multiply(vec2 a, vec2 b) { return a * b; }
vec2 lx_pair_divide(vec2 a, vec2 b) { return a / b; }
vec2 lx_pair_log(vec2 x) { return log(x); }
vec2 lx_pair_log1p(vec2 x) { return log(1.0 + x); }
vec2 lx_pair_exp(vec2 x, out int n) { n = 0; return exp(x); }
vec2 lx_pair_expm1(vec2 x, out int n) { n = 0; return exp(x) - 1.0; }
float lx_pair_value(vec2 a, int n) { return ldexp(a.x + a.y, n); }
float lx_stirling_rest(float a) { return a; }
float lx_scale(float x, int n) { return ldexp(x, n); }
vec2 lx_pair_log_bend(vec2 m) { return m - log(1.0 + m); }
float lx_divide(float x, float y) { return x / y; }

//! function lx_pair_sin_half_turns needs lx_pair_sum, lx_pair_add, lx_pair_multiply
// sin(pi x), by way of the exact distance from the nearest whole number.
vec2 lx_pair_sin_half_turns(vec2 x) {
    float whole = roundEven(x.x);
    precise float distance = x.x - whole;
    vec2 d = lx_pair_sum(distance, x.y);
    bool negative = (whole - 2.0 * floor(0.5 * whole) != 0.0) != (d.x < 0.0);
    d = mix(d, -d, bvec2(d.x < 0.0));
    bool far = d.x > 0.25;
    d = mix(d, lx_pair_add(vec2(0.5, 0.0), -d), bvec2(far));
    vec2 y = lx_pair_multiply(d, vec2(3.1415927, -8.742278e-08));
    float z = y.x * y.x;
    float odd = fma(fma(fma(2.7557319e-06, z, -0.0001984127), z, 0.008333334), z, -0.16666667) * z * y.x;
    float even = fma(fma(fma(-2.7557319e-07, z, 2.4801588e-05), z, -0.0013888889), z, 0.041666668) * z * z;
    vec2 half_square = 0.5 * lx_pair_multiply(y, y);
    vec2 first = mix(y, lx_pair_add(vec2(1.0, 0.0), -half_square), bvec2(far));
    vec2 sine = lx_pair_add(first, vec2(mix(odd, even, far), 0.0));
    return mix(sine, -sine, bvec2(negative));
}

//! function lx_gamma_lift needs lx_scale, lx_pair_add, lx_pair_multiply
// x (x + 1) ... (x + 8) for x < 20, which is then x + 9; else 1. A tiny x comes 2^shift times too large.
vec2 lx_gamma_lift(inout vec2 x, out int shift) {
    shift = 0;
    if (x.x >= 20.0)
        return vec2(1.0, 0.0);
    shift = mix(0, 127 - int(floatBitsToUint(x.x) >> 23), x.x < 1e-10);
    vec2 product = vec2(lx_scale(x.x, shift), lx_scale(x.y, shift));
    for (float k = 1.0; k < 8.5; k += 1.0)
        product = lx_pair_multiply(product, lx_pair_add(x, vec2(k, 0.0)));
    x = lx_pair_add(x, vec2(9.0, 0.0));
    return product;
}

//! function lx_log_gamma_large needs lx_pair_add, lx_pair_multiply, lx_pair_log, lx_stirling_rest
// log(gamma(x)) for 9 <= x <= 1e30.
vec2 lx_log_gamma_large(vec2 x) {
    vec2 powers = lx_pair_multiply(lx_pair_add(x, vec2(-0.5, 0.0)), lx_pair_log(x));
    vec2 rest = lx_pair_add(vec2(0.9189385, 1.5634177e-08), vec2(lx_stirling_rest(x.x), 0.0));
    return lx_pair_add(lx_pair_add(powers, -x), rest);
}

//! function lx_log_gamma_step needs lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log, lx_pair_log1p, lx_stirling_rest
// log(gamma(base + step) / gamma(base)) for base >= 9 and step >= 0: step log(end) + (base - 1/2) log(1 + step / base)
// - step + ..., of which nothing is far greater than the whole where that is no exponent beyond all floats.
vec2 lx_log_gamma_step(vec2 base, vec2 step) {
    vec2 end = lx_pair_add(base, step);
    vec2 total = lx_pair_multiply(step, lx_pair_log(end));
    vec2 bend = lx_pair_multiply(lx_pair_add(base, vec2(-0.5, 0.0)), lx_pair_log1p(lx_pair_divide(step, base)));
    total = lx_pair_add(total, lx_pair_add(bend, -step));
    return lx_pair_add(total, vec2(lx_stirling_rest(end.x) - lx_stirling_rest(base.x), 0.0));
}

//! function lx_gamma_parts needs lx_gamma_lift, lx_log_gamma_large
// gamma(x) = e^exponent 2^shift / what is returned, for 0 < x <= 1e30.
vec2 lx_gamma_parts(vec2 x, out vec2 exponent, out int shift) {
    vec2 product = lx_gamma_lift(x, shift);
    exponent = lx_log_gamma_large(x);
    return product;
}

//! function lx_gamma_step_parts needs lx_scale, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_gamma_lift, lx_log_gamma_step
// gamma(base + step) / gamma(base) = e^exponent 2^shift / what is returned, for base > 0 and step >= 0.
vec2 lx_gamma_step_parts(vec2 base, vec2 step, out vec2 exponent, out int shift) {
    vec2 end = lx_pair_add(base, step);
    bool lifted = base.x < 20.0;
    int end_shift = mix(0, 127 - int(floatBitsToUint(end.x) >> 23), lifted && end.x < 1e-10);
    vec2 above = lx_gamma_lift(base, shift);
    exponent = lx_log_gamma_step(base, step);
    shift = end_shift - shift;
    vec2 below = vec2(1.0, 0.0);
    if (lifted)
        below = vec2(lx_scale(end.x, end_shift), lx_scale(end.y, end_shift));
    for (float k = 1.0; k < mix(0.0, 8.5, lifted); k += 1.0)
        below = lx_pair_multiply(below, lx_pair_add(end, vec2(k, 0.0)));
    return lx_pair_divide(below, above);
}

//! function lx_gamma_of_sum needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_exp, lx_pair_value, lx_divide, lx_pair_sin_half_turns, lx_gamma_parts
// The gamma function of x + y, of which y is the smaller by far: below 0 by reflection. NaN at the poles but zeros.
float lx_gamma_of_sum(float x, float y) {
    bool below = x < 0.0;
    bool tiny = abs(x) < 1e-10;
    vec2 held = lx_pair_sum(clamp(x, -100.0, 100.0), y);
    vec2 argument = below ? lx_pair_add(vec2(1.0, 0.0), -held) : held;
    argument = tiny ? vec2(1.0, 0.0) : argument;
    vec2 exponent;
    int n, shift;
    vec2 found = lx_gamma_parts(argument, exponent, shift);
    vec2 power = lx_pair_exp(exponent, n);
    n += shift;
    if (below && !tiny) {
        vec2 sine = lx_pair_sin_half_turns(vec2(x, y));
        power = lx_pair_multiply(power, mix(sine, vec2(1.0, 0.0), bvec2(sine.x == 0.0)));
        found = lx_pair_divide(lx_pair_multiply(found, vec2(3.1415927, -8.742278e-08)), power);
        n = -n;
    } else {
        found = lx_pair_divide(power, found);
    }
    float result = lx_pair_value(found, n);
    result = tiny ? lx_divide(1.0, x) : result;
    bool pole = below && floor(x) == x && y == 0.0;
    return mix(result, uintBitsToFloat(0x7fc00000u), pole || floatBitsToUint(abs(x)) > 0x7f800000u);
}

//! function lx_gamma needs lx_gamma_of_sum
// The gamma function.
float lx_gamma(float x) { return lx_gamma_of_sum(x, 0.0); }

//! function lx_factorial needs lx_pair_sum, lx_gamma_of_sum
// gamma(x + 1), and 0 below 0.
float lx_factorial(float x) {
    vec2 next = lx_pair_sum(max(x, -1.0), 1.0);
    return mix(lx_gamma_of_sum(next.x, next.y), mix(x, 0.0, x < 0.0), x < 0.0 || floatBitsToUint(abs(x)) >= 0x7f800000u);
}

//! function lx_beta_pair needs lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_exp, lx_gamma_parts, lx_gamma_step_parts
// The beta function of p, q > 0 of which not both are tiny, as what is returned times 2^n.
vec2 lx_beta_pair(vec2 p, vec2 q, out int n) {
    bool above = p.x > q.x;
    vec2 small = mix(p, q, bvec2(above));
    vec2 large = mix(q, p, bvec2(above));
    // Beyond some hundreds the result is 0, and the parts of its logarithm may be large.
    small = mix(small, vec2(1e3, 0.0), bvec2(small.x > 1e3));
    vec2 exponent, step;
    int shift, step_shift;
    vec2 found = lx_gamma_parts(small, exponent, shift);
    found = lx_pair_divide(lx_gamma_step_parts(large, small, step, step_shift), found);
    vec2 power = lx_pair_exp(lx_pair_add(exponent, -step), n);
    n += shift - step_shift;
    return lx_pair_multiply(power, found);
}

//! function lx_beta needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_value, lx_divide, lx_pair_sin_half_turns, lx_beta_pair
// gamma(a) gamma(b) / gamma(a + b), by reflection where arguments or their sum are negative. NaN where one of the three
// has a pole, but at zeros.
float lx_beta(float a, float b) {
    vec2 total = lx_pair_sum(a, b);
    vec2 one = vec2(1.0, 0.0);
    bool a_below = a < 0.0;
    bool b_below = b < 0.0;
    float infinite = uintBitsToFloat(0x7f800000u);
    float least = min(abs(a), abs(b));
    float most = max(abs(a), abs(b));
    bool tiny = least < 1e-20 || most < 1e-10;
    bool usable = !tiny && most < infinite;
    vec2 p = usable ? vec2(a, 0.0) : one;
    vec2 q = usable ? vec2(b, 0.0) : one;
    vec2 sum = usable ? total : vec2(2.0, 0.0);
    bool none = usable && a_below != b_below && sum.x == 0.0;
    bool reflected = usable && (a_below || b_below) && !none;
    bool sum_below = sum.x < 0.0;
    vec2 above = one;
    vec2 below = one;
    bool inverse = false;
    if (reflected) {
        // With one negative argument x and the other y, and their sum positive: pi / (sin(pi x) y B(1 - x, x + y)); with
        // their sum negative sin(pi (x + y)) / sin(pi x) B(y, 1 - x - y); with both negative
        // pi sin(pi (x + y)) / (sin(pi x) sin(pi y) (1 - x - y) B(1 - x, 1 - y)).
        vec2 x = mix(q, p, bvec2(a_below));
        vec2 y = mix(p, q, bvec2(a_below));
        bool both = a_below && b_below;
        vec2 rest = lx_pair_add(one, -sum);
        below = lx_pair_sin_half_turns(x);
        if (sum_below)
            above = lx_pair_sin_half_turns(sum);
        if (both)
            below = lx_pair_multiply(below, lx_pair_sin_half_turns(y));
        inverse = both || !sum_below;
        if (inverse) {
            above = lx_pair_multiply(above, vec2(3.1415927, -8.742278e-08));
            below = lx_pair_multiply(below, mix(y, rest, bvec2(both)));
        }
        p = mix(y, lx_pair_add(one, -x), bvec2(inverse));
        q = mix(rest, mix(sum, lx_pair_add(one, -y), bvec2(both)), bvec2(inverse));
    }
    int n;
    vec2 found = lx_beta_pair(p, q, n);
    bool poles = below.x == 0.0;
    below = mix(below, one, bvec2(poles));
    if (inverse) {
        n = -n;
        found = lx_pair_divide(above, lx_pair_multiply(found, below));
    } else {
        found = lx_pair_divide(lx_pair_multiply(found, above), below);
    }
    float result = lx_pair_value(found, n);
    // 1 / a + 1 / b, of which nothing overflows that does not in the result, or 0 where a + b is.
    float inverses = lx_divide(1.0, a) + lx_divide(1.0, b);
    result = mix(result, inverses, tiny && most < infinite);
    result = mix(result, 0.0, none || most == infinite && (a > 0.0 && b > 0.0));
    bool undefined = a_below && floor(a) == a || b_below && floor(b) == b || total.x < 0.0 && floor(total.x) == total.x
        && total.y == 0.0 || poles && reflected || most == infinite && (a <= 0.0 || b <= 0.0);
    bool unordered = floatBitsToUint(least) > 0x7f800000u || floatBitsToUint(most) > 0x7f800000u || a != a || b != b;
    return mix(result, uintBitsToFloat(0x7fc00000u), undefined || unordered);
}

//! function lx_poch needs lx_scale, lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_exp, lx_pair_value, lx_pair_sin_half_turns, lx_gamma_parts, lx_gamma_step_parts
// gamma(z + m) / gamma(z), by reflection where z or z + m is negative; 1 for m = 0. NaN where one has a pole, but at zeros.
float lx_poch(float z, float m) {
    float infinite = uintBitsToFloat(0x7f800000u);
    vec2 end = lx_pair_sum(z, m);
    bool usable = abs(z) < infinite && abs(m) < infinite && z != 0.0 && end.x != 0.0;
    vec2 from = usable ? vec2(z, 0.0) : vec2(1.0, 0.0);
    vec2 to = usable ? end : vec2(2.0, 0.0);
    bool from_below = from.x < 0.0;
    bool to_below = to.x < 0.0;
    vec2 one = vec2(1.0, 0.0);
    vec2 from_sine = from_below ? lx_pair_sin_half_turns(from) : one;
    vec2 to_sine = to_below ? lx_pair_sin_half_turns(to) : one;
    bool poles = from_sine.x == 0.0 || to_sine.x == 0.0;
    vec2 p = from_below ? lx_pair_add(one, -from) : from;
    vec2 q = to_below ? lx_pair_add(one, -to) : to;
    vec2 factor, exponent;
    int n, shift;
    bool inverse;
    if (from_below == to_below) {
        // gamma(q) / gamma(p), or the other way round.
        bool forward = from_below ? m <= 0.0 : m >= 0.0;
        vec2 low = forward ? p : q;
        vec2 size = vec2(mix(abs(m), 1.0, !usable), 0.0);
        size = mix(size, vec2(1e3, 0.0), bvec2(size.x > 1e3 && low.x < 1e3));
        factor = lx_gamma_step_parts(low, size, exponent, shift);
        inverse = forward == from_below;
    } else {
        // gamma(p) gamma(q) over pi, or pi over it.
        vec2 other;
        int other_shift;
        p = mix(p, vec2(1e3, 0.0), bvec2(p.x > 1e3));
        q = mix(q, vec2(1e3, 0.0), bvec2(q.x > 1e3));
        factor = lx_gamma_parts(p, exponent, shift);
        factor = lx_pair_multiply(factor, lx_gamma_parts(q, other, other_shift));
        factor = lx_pair_multiply(factor, vec2(3.1415927, -8.742278e-08));
        exponent = lx_pair_add(exponent, other);
        shift += other_shift;
        inverse = to_below;
    }
    vec2 power = lx_pair_exp(mix(exponent, -exponent, bvec2(inverse)), n);
    n += mix(shift, -shift, inverse);
    vec2 divisor = mix(to_sine, one, bvec2(poles));
    uint bits = floatBitsToUint(abs(divisor.x));
    int sine_shift = mix(0, 127 - int(bits >> 23), bits < 0x2e000000u);
    n += sine_shift;
    divisor = vec2(lx_scale(divisor.x, sine_shift), lx_scale(divisor.y, sine_shift));
    vec2 below = lx_pair_multiply(divisor, mix(factor, one, bvec2(inverse)));
    vec2 above = lx_pair_multiply(lx_pair_multiply(power, from_sine), mix(one, factor, bvec2(inverse)));
    float result = lx_pair_value(lx_pair_divide(above, below), n);
    result = mix(result, 0.0, z == 0.0);
    result = mix(result, infinite, end.x == 0.0);
    bool undefined = poles || !(abs(z) < infinite) || !(abs(m) < infinite) || z == 0.0 && m < 0.0 && floor(m) == m
        || z < 0.0 && floor(z) == z;
    result = mix(result, uintBitsToFloat(0x7fc00000u), undefined);
    return mix(result, 1.0, m == 0.0);
}

//! function lx_power_less_one needs lx_pair_multiply, lx_pair_divide, lx_pair_expm1, lx_pair_value
// (e^(power logarithm) - 1) / power, and its limits; the logarithm for power = 0. Infinite logarithms come as 1e30 and more.
float lx_power_less_one(vec2 logarithm, float power) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool ends = abs(logarithm.x) >= 1e30;
    bool flat_power = abs(power) < 1e-15;
    float held = mix(clamp(power, -1e30, 1e30), 1.0, flat_power || power != power);
    // The digits of a faint logarithm's halves may be denormal: 2^60 goes from the power to it.
    bool faint = abs(logarithm.x) < 1e-15;
    vec2 raised = mix(logarithm, vec2(1.0, 0.0), bvec2(ends)) * mix(1.0, 1.1529215e+18, faint);
    vec2 grown = lx_pair_multiply(vec2(held * mix(1.0, 8.6736174e-19, faint), 0.0), raised);
    int n;
    vec2 less_one = lx_pair_expm1(grown, n);
    // A quotient by a large power may be denormal before 2^n is put to it.
    bool large = abs(held) > 1e15;
    vec2 quotient = lx_pair_divide(less_one, vec2(held * mix(1.0, 8.6736174e-19, large), 0.0));
    n -= mix(0, 60, large);
    // Where their product is far below 1 it is the logarithm, to rounding.
    float small = mix(logarithm.x + logarithm.y, sign(logarithm.x) * infinite, ends);
    float result = mix(lx_pair_value(quotient, n), small, abs(power * logarithm.x) < 1e-9);
    float at_end = mix(sign(logarithm.x) * infinite, -1.0 / mix(power, 1.0, power == 0.0),
        power * sign(logarithm.x) < 0.0);
    result = mix(result, at_end, ends);
    bool grows = power * sign(logarithm.x) > 0.0;
    float limit = sign(logarithm.x) * mix(0.0, infinite, grows);
    result = mix(result, mix(limit, 0.0, logarithm.x == 0.0), abs(power) == infinite);
    return mix(result, uintBitsToFloat(0x7fc00000u), power != power);
}

//! function lx_boxcox needs lx_pair_log, lx_power_less_one
// (x^power - 1) / power; log(x) for power = 0.
float lx_boxcox(float x, float power) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool inside = x > 0.0 && x < infinite;
    vec2 logarithm = lx_pair_log(vec2(mix(1.0, x, inside), 0.0));
    float result = lx_power_less_one(mix(vec2(mix(-1e30, 1e30, x > 0.0), 0.0), logarithm, bvec2(inside)), power);
    return mix(result, uintBitsToFloat(0x7fc00000u), !(x >= 0.0));
}

//! function lx_boxcox1p needs lx_pair_log1p, lx_power_less_one
// ((1 + x)^power - 1) / power; log(1 + x) for power = 0.
float lx_boxcox1p(float x, float power) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool inside = x > -1.0 && x < infinite;
    // A number so small is its own logarithm; what it is computed from otherwise may be flushed to zero.
    vec2 logarithm = abs(x) < 1e-15 ? vec2(x, 0.0) : lx_pair_log1p(vec2(mix(1.0, x, inside), 0.0));
    float result = lx_power_less_one(mix(vec2(mix(-1e30, 1e30, x > 0.0), 0.0), logarithm, bvec2(inside)), power);
    result = mix(result, x, x == 0.0 && power == power);
    return mix(result, uintBitsToFloat(0x7fc00000u), !(x >= -1.0));
}

//! function lx_kl_div needs lx_pair_sum, lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log, lx_pair_value, lx_pair_log_bend
// x log(x / y) - x + y for x, y > 0: x (m - log(1 + m)) with m = (y - x) / x, or x (log(x) - log(y) - 1) + y.
float lx_kl_div(float x, float y) {
    float infinite = uintBitsToFloat(0x7f800000u);
    bool usable = x > 0.0 && y > 0.0 && x < infinite && y < infinite;
    float p = usable ? x : 1.0;
    float q = usable ? y : 1.0;
    vec2 found;
    int n = 0;
    if (p < 100.0 * q && q < 100.0 * p) {
        // Brought nearer to 1 by a power of two where it is far from it.
        float scale = mix(mix(1.0, 1.1529215e+18, p < 1e-20), 8.6736174e-19, p > 1e20);
        n = mix(mix(0, -60, p < 1e-20), 60, p > 1e20);
        p *= scale;
        q *= scale;
        found = lx_pair_multiply(vec2(p, 0.0), lx_pair_log_bend(lx_pair_divide(lx_pair_sum(q, -p), vec2(p, 0.0))));
    } else {
        vec2 logarithm = lx_pair_add(lx_pair_log(vec2(p, 0.0)), -lx_pair_log(vec2(q, 0.0)));
        vec2 factor = lx_pair_add(logarithm, vec2(-1.0, 0.0));
        // Large ones smaller by 2^8, since a product that overflows may not do so in the sum; small ones larger by 2^60,
        // whose roundings would be denormal.
        bool large = max(p, q) > 1e20;
        bool small = max(p, q) < 1e-20;
        n = mix(mix(0, 8, large), -60, small);
        float scale = mix(mix(1.0, 0.00390625, large), 1.1529215e+18, small);
        found = lx_pair_add(lx_pair_multiply(vec2(scale * p, 0.0), factor), vec2(scale * q, 0.0));
    }
    float result = lx_pair_value(found, n);
    float edge = mix(infinite, y, x == 0.0 && y >= 0.0);
    bool undefined = x != x || y != y || x > 0.0 && y > 0.0;
    return usable ? result : mix(edge, uintBitsToFloat(0x7fc00000u), undefined);
}
//! end

void main() {}
