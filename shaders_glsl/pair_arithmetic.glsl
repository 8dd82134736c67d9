#version 460
// Numbers of twice the digits in float32: unevaluated sums of two floats, of which the second is at most half a unit in
// the last place of the first. Sums are Knuth's, products Dekker's with heads of 12 bits ("A floating-point technique
// for extending the available precision", 1971): results do not depend on whether fma is fused.

// A stand-in for a function of another file, so that this one compiles on its own; a shader gets the real one.
float lx_scale(float x, int n) { return ldexp(x, n); }

//! function lx_pair_settled
// a + b, for |a| >= |b|.
vec2 lx_pair_settled(float a, float b) {
    precise float total = a + b;
    precise float rest = b - (total - a);
    return vec2(total, rest);
}

//! function lx_pair_sum
// a + b, exactly.
vec2 lx_pair_sum(float a, float b) {
    precise float total = a + b;
    precise float of_b = total - a;
    precise float rest = (a - (total - of_b)) + (b - of_b);
    return vec2(total, rest);
}

//! function lx_pair_product
// a b, exactly, but for what is too small for a float.
vec2 lx_pair_product(float a, float b) {
    precise float total = a * b;
    precise float a_head = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u);
    precise float b_head = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u);
    precise float a_tail = a - a_head;
    precise float b_tail = b - b_head;
    precise float rest = (((a_head * b_head - total) + a_head * b_tail) + a_tail * b_head) + a_tail * b_tail;
    return vec2(total, rest);
}

//! function lx_pair_add needs lx_pair_sum, lx_pair_settled
vec2 lx_pair_add(vec2 a, vec2 b) {
    vec2 total = lx_pair_sum(a.x, b.x);
    precise float rest = total.y + (a.y + b.y);
    return lx_pair_settled(total.x, rest);
}

//! function lx_pair_multiply needs lx_pair_product, lx_pair_settled
vec2 lx_pair_multiply(vec2 a, vec2 b) {
    vec2 product = lx_pair_product(a.x, b.x);
    precise float rest = product.y + (a.x * b.y + a.y * b.x);
    return lx_pair_settled(product.x, rest);
}

//! function lx_pair_divide needs lx_pair_product, lx_pair_settled
// a / b, for 2^-126 <= |b| <= 2^126.
vec2 lx_pair_divide(vec2 a, vec2 b) {
    precise float quotient = a.x / b.x;
    vec2 back = lx_pair_product(quotient, b.x);
    precise float rest = (((a.x - back.x) - back.y) + a.y) - quotient * b.y;
    precise float correction = rest / b.x;
    return lx_pair_settled(quotient, correction);
}

//! function lx_pair_value needs lx_scale
// (a.x + a.y) 2^n; 0 and infinity where that is too small or too large.
float lx_pair_value(vec2 a, int n) {
    precise float total = a.x + a.y;
    return mix(lx_scale(total, clamp(n, -252, 254)), 0.0, n < -252);
}

//! function lx_pair_log_of_ratio needs lx_pair_add, lx_pair_multiply
// log((1 + s) / (1 - s)) for |s| <= 0.2, good to some 2^-41 of itself: 2 (s + s^3/3 + ...), of which the first three terms
// are pairs.
vec2 lx_pair_log_of_ratio(vec2 s) {
    vec2 z = lx_pair_multiply(s, s);
    float q = fma(0.047619049, z.x, 0.052631580);
    q = fma(q, z.x, 0.058823530);
    q = fma(q, z.x, 0.06666667);
    q = fma(q, z.x, 0.07692308);
    q = fma(q, z.x, 0.09090909);
    q = fma(q, z.x, 0.11111111);
    q = fma(q, z.x, 0.14285715);
    vec2 series = lx_pair_add(vec2(0.2, -2.9802323e-09), vec2(q * z.x, 0.0));
    series = lx_pair_add(vec2(0.33333334, -9.934108e-09), lx_pair_multiply(series, z));
    vec2 half_of_it = lx_pair_multiply(s, lx_pair_add(vec2(1.0, 0.0), lx_pair_multiply(series, z)));
    return half_of_it + half_of_it;
}

//! function lx_pair_log needs lx_scale, lx_pair_sum, lx_pair_product, lx_pair_add, lx_pair_divide, lx_pair_log_of_ratio
// log(x) of positive finite x, good to some 2^-41 of itself: x = 2^k m, and s = (m - 1) / (m + 1). A denormal x is read
// as an integer.
vec2 lx_pair_log(vec2 x) {
    int bits = floatBitsToInt(x.x);
    bool tiny = bits < 0x00800000;
    int shifted = mix(bits, floatBitsToInt(float(bits)), tiny) - 0x3f3504f3;
    int exponent = shifted >> 23;
    float k = float(exponent - mix(0, 149, tiny));
    precise float m = intBitsToFloat((shifted & 0x007fffff) + 0x3f3504f3);
    precise float low = mix(lx_scale(x.y, -exponent), 0.0, tiny);
    precise float f = m - 1.0;
    vec2 s = lx_pair_divide(lx_pair_sum(f, low), lx_pair_add(lx_pair_sum(m, 1.0), vec2(low, 0.0)));
    vec2 rest = lx_pair_product(k, 1.4286068e-06);
    rest.y += k * 5.497923e-14;
    vec2 of_k = lx_pair_add(vec2(k * 0.69314575, 0.0), rest);
    return lx_pair_add(of_k, lx_pair_log_of_ratio(s));
}

//! function lx_pair_log1p needs lx_pair_add, lx_pair_divide, lx_pair_log, lx_pair_log_of_ratio
// log(1 + x) for x > -1, with its digits near 0 too.
vec2 lx_pair_log1p(vec2 x) {
    if (abs(x.x) < 0.4)
        return lx_pair_log_of_ratio(lx_pair_divide(x, lx_pair_add(vec2(2.0, 0.0), x)));
    return lx_pair_log(lx_pair_add(vec2(1.0, 0.0), x));
}

//! function lx_pair_log_bend needs lx_pair_add, lx_pair_multiply, lx_pair_divide, lx_pair_log1p
// m - log(1 + m) for m > -1, with its digits near 0 too: with r = m / (2 + m) it is m r - 2 (r^3/3 + r^5/5 + ...).
vec2 lx_pair_log_bend(vec2 m) {
    if (abs(m.x) >= 0.4)
        return lx_pair_add(m, -lx_pair_log1p(m));
    vec2 r = lx_pair_divide(m, lx_pair_add(vec2(2.0, 0.0), m));
    vec2 z = lx_pair_multiply(r, r);
    float q = fma(0.105263160, z.x, 0.11764706);
    q = fma(q, z.x, 0.13333334);
    q = fma(q, z.x, 0.15384616);
    q = fma(q, z.x, 0.18181819);
    q = fma(q, z.x, 0.22222222);
    q = fma(q, z.x, 0.2857143);
    vec2 series = lx_pair_add(vec2(0.4, -5.9604646e-09), vec2(q * z.x, 0.0));
    series = lx_pair_add(vec2(0.6666667, -1.9868216e-08), lx_pair_multiply(series, z));
    return lx_pair_multiply(r, lx_pair_add(m, -lx_pair_multiply(series, z)));
}

//! function lx_pair_exp_polynomial needs lx_pair_add, lx_pair_multiply
// e^r - 1 for |r| <= 0.4, good to some 2^-31 of e^r, and near 0 of its own.
vec2 lx_pair_exp_polynomial(vec2 r) {
    float q = fma(2.7557319e-06, r.x, 2.4801588e-05);
    q = fma(q, r.x, 0.0001984127);
    q = fma(q, r.x, 0.0013888889);
    q = fma(q, r.x, 0.008333334);
    q = fma(q, r.x, 0.041666668);
    vec2 series = lx_pair_add(vec2(0.16666667, -4.967054e-09), vec2(q * r.x, 0.0));
    series = lx_pair_add(vec2(0.5, 0.0), lx_pair_multiply(series, r));
    return lx_pair_add(r, lx_pair_multiply(lx_pair_multiply(r, r), series));
}

//! function lx_pair_exp_reduced needs lx_pair_add, lx_pair_sum, lx_pair_product
// x = n log(2) + what is returned, for |x| < 300.
vec2 lx_pair_exp_reduced(vec2 x, out int n) {
    float whole = roundEven(x.x * 1.442695);
    n = int(whole);
    precise float high = x.x - whole * 0.69314575;
    vec2 product = lx_pair_product(-whole, 1.4286068e-06);
    precise float low = x.y + (product.y - whole * 5.497923e-14);
    return lx_pair_add(lx_pair_sum(high, low), vec2(product.x, 0.0));
}

//! function lx_pair_exp needs lx_pair_add, lx_pair_exp_reduced, lx_pair_exp_polynomial
// e^x = what is returned times 2^n; x is taken for -250 below and for 250 above.
vec2 lx_pair_exp(vec2 x, out int n) {
    bool far = abs(x.x) > 250.0;
    vec2 held = mix(x, vec2(clamp(x.x, -250.0, 250.0), 0.0), bvec2(far));
    return lx_pair_add(vec2(1.0, 0.0), lx_pair_exp_polynomial(lx_pair_exp_reduced(held, n)));
}

//! function lx_pair_expm1 needs lx_scale, lx_pair_add, lx_pair_exp_reduced, lx_pair_exp_polynomial, lx_pair_sum
// e^x - 1 = what is returned times 2^n, with its digits near 0 too.
vec2 lx_pair_expm1(vec2 x, out int n) {
    bool far = x.x > 250.0 || x.x < -60.0;
    vec2 held = mix(x, vec2(clamp(x.x, -60.0, 250.0), 0.0), bvec2(far));
    vec2 power = lx_pair_exp_polynomial(lx_pair_exp_reduced(held, n));
    // 2^n (e^r - 1) + 2^n - 1, divided by 2^n where n is positive.
    int less = min(n, 0);
    vec2 scaled = vec2(lx_scale(power.x, less), lx_scale(power.y, less));
    vec2 ones = lx_pair_sum(lx_scale(1.0, less), -lx_scale(1.0, max(less - n, -120)));
    n -= less;
    return lx_pair_add(ones, scaled);
}
//! end

void main() {}
