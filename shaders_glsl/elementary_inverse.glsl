#version 460
// Inverse functions in float32: roots, logarithms, inverse trigonometric and hyperbolic functions, erfinv.
// Polynomials are our own Remez-like fits with coefficients rounded to float32 one after the other; those of the
// logarithms use Estrin's scheme, in which few operations wait for each other. Results do not depend on whether fma is
// fused. Selections are mix(otherwise, chosen, condition), which never branches.

//! function lx_sqrt
// Vulkan bounds sqrt only through inversesqrt and a division. One Newton step on an exact residual (Dekker's
// splitting, 1971) takes it below one unit in the last place. Small arguments are scaled away from underflow.
float lx_sqrt(float x) {
    bool tiny = x < 5.421011e-20;
    precise float v = mix(x, x * 1.8446744e+19, tiny);
    precise float s = sqrt(v);
    precise float high = uintBitsToFloat(floatBitsToUint(s) & 0xfffff000u);
    precise float low = s - high;
    precise float residual = ((v - high * high) - (high + high) * low) - low * low;
    precise float root = s + residual * (0.5 / s);
    root = mix(root, root * 2.3283064e-10, tiny);
    uint bits = floatBitsToUint(x);
    root = mix(root, uintBitsToFloat(0x7fc00000u), bits > 0x7f800000u);
    root = mix(root, x, bits == 0x7f800000u);
    return mix(root, uintBitsToFloat(bits & 0x80000000u), x == 0.0);
}

//! function lx_rsqrt
// 1 / sqrt(x): the builtin is within 2 units; only the ends of the range are ours.
float lx_rsqrt(float x) {
    bool tiny = x < 5.421011e-20;
    precise float root = inversesqrt(mix(x, x * 1.8446744e+19, tiny)) * mix(1.0, 4.2949673e+09, tiny);
    uint bits = floatBitsToUint(x);
    root = mix(root, uintBitsToFloat(0x7fc00000u), bits > 0x7f800000u);
    root = mix(root, 0.0, bits == 0x7f800000u);
    return mix(root, uintBitsToFloat(0x7f800000u | (bits & 0x80000000u)), x == 0.0);
}

//! function lx_cbrt
// y = x^(-1/3) from the exponent's bits, two Householder steps, and one Newton step on x y^2. The ends of the range
// are brought inwards, so that no product over- or underflows.
float lx_cbrt(float x) {
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    bool tiny = bits < 0x10000000u;
    bool huge = bits >= 0x7e000000u;
    precise float v = uintBitsToFloat(bits) * mix(mix(1.0, 5.9604645e-08, huge), 4.7223665e+21, tiny);
    precise float y = intBitsToFloat(0x54a21000 - int(float(floatBitsToInt(v)) * 0.33333334));
    precise float e = 1.0 - (v * y) * (y * y);
    y = y + y * (e * fma(e, fma(e, 0.17283951, 0.22222222), 0.33333334));
    e = 1.0 - (v * y) * (y * y);
    y = y + y * (e * fma(e, 0.22222222, 0.33333334));
    precise float square = y * y;
    precise float root = v * square;
    root = root + (v - root * (root * root)) * (square * 0.33333334);
    root = root * mix(mix(1.0, 256.0, huge), 5.9604645e-08, tiny);
    root = mix(root, uintBitsToFloat(bits), bits >= 0x7f800000u || bits == 0u);
    return uintBitsToFloat(floatBitsToUint(root) | (floatBitsToUint(x) & 0x80000000u));
}

//! function lx_log_polynomial
// k ln 2 + log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2), ln 2 in two parts (Cody and Waite).
float lx_log_polynomial(float k, float f) {
    precise float square = f * f;
    float low = fma(fma(-0.16623409, f, 0.20001242), square, fma(-0.2500082, f, 0.3333333));
    float high = fma(fma(-0.07636395, f, 0.12762198), square, fma(-0.13159613, f, 0.14201581));
    float q = fma(high, square * square, low);
    precise float tail = fma(square * f, q, k * 1.4286068e-06);
    precise float result = k * 0.69314575 + (f - (0.5 * square - tail));
    return result;
}

//! function lx_log_split
// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2) for positive finite x; denormals are read as integers, so
// that they count on devices that flush them, too.
float lx_log_split(float x, out float k) {
    int bits = floatBitsToInt(x);
    bool tiny = bits < 0x00800000;
    int shifted = mix(bits, floatBitsToInt(float(bits)), tiny) - 0x3f3504f3;
    k = float((shifted >> 23) - mix(0, 149, tiny));
    precise float f = intBitsToFloat((shifted & 0x007fffff) + 0x3f3504f3) - 1.0;
    return f;
}

//! function lx_log_special
// The logarithm's values outside of (0, inf): -inf at both zeros, NaN below and for NaN, inf at inf.
float lx_log_special(float x, float result) {
    uint bits = floatBitsToUint(x);
    float other = mix(uintBitsToFloat(mix(0x7fc00000u, 0xff800000u, (bits << 1) == 0u)), x, bits == 0x7f800000u);
    return mix(result, other, bits - 1u >= 0x7f7fffffu);
}

//! function lx_log needs lx_log_split, lx_log_polynomial, lx_log_special
// Natural logarithm.
float lx_log(float x) {
    float k;
    float f = lx_log_split(x, k);
    return lx_log_special(x, lx_log_polynomial(k, f));
}

//! function lx_log2 needs lx_log_split, lx_log_special
// Binary logarithm; exact for powers of two. The product with log2(e) = 1.442695 + 1.925963e-08 keeps both parts.
float lx_log2(float x) {
    float k;
    float f = lx_log_split(x, k);
    float square = f * f;
    float low = fma(fma(-0.23958118, f, 0.28857377), square, fma(-0.36069843, f, 0.48089817));
    float high = fma(fma(-0.11096139, f, 0.18721658), square, fma(-0.19119136, f, 0.20444843));
    float q = fma(fma(high, square * square, low), f, -0.72134733);
    precise float first = f * 1.442695;
    precise float result = k + fma(f, fma(q, f, 1.925963e-08), first);
    return lx_log_special(x, result);
}

//! function lx_log1p needs lx_log_split, lx_log_polynomial
// log(1 + x): 1 + x = u + c exactly, u = 2^k m, and c 2^-k is added to m - 1 before the polynomial.
float lx_log1p(float x) {
    precise float u = 1.0 + x;
    precise float c = mix(1.0 - (u - x), x - (u - 1.0), x < 1.0);
    float k;
    precise float f = lx_log_split(u, k);
    f = f + c * intBitsToFloat(max(127 - int(k), 0) << 23);
    float result = lx_log_polynomial(k, f);
    uint bits = floatBitsToUint(x);
    result = mix(result, uintBitsToFloat(mix(0x7fc00000u, 0xff800000u, bits == 0xbf800000u)), bits >= 0xbf800000u);
    uint magnitude = bits & 0x7fffffffu;
    bool same = magnitude > 0x7f800000u || bits == 0x7f800000u;
    return mix(result, x, same || magnitude < 0x33000000u);
}

//! function lx_asinh needs lx_log1p, lx_sqrt
// log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; log(2 a) where a^2 would overflow.
float lx_asinh(float x) {
    float a = abs(x);
    bool large = a > 1.0737418e+09;
    precise float square = a * a;
    precise float u = a + square / (1.0 + lx_sqrt(1.0 + square));
    precise float result = lx_log1p(mix(u, a, large)) + mix(0.0, 0.6931472, large);
    return uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) & 0x80000000u));
}

//! function lx_acosh needs lx_log1p, lx_sqrt
// log1p(t + sqrt(2 t + t^2)), t = x - 1; log(2 x) where t^2 would overflow.
float lx_acosh(float x) {
    bool large = x > 1.0737418e+09;
    precise float t = x - 1.0;
    precise float u = t + lx_sqrt(fma(t, t, t + t));
    precise float result = lx_log1p(mix(u, x, large)) + mix(0.0, 0.6931472, large);
    return mix(result, uintBitsToFloat(0x7fc00000u), x < 1.0);
}

//! function lx_atanh needs lx_log1p
// log1p(2 a / (1 - a)) / 2, a = |x|.
float lx_atanh(float x) {
    uint bits = floatBitsToUint(x);
    uint magnitude = bits & 0x7fffffffu;
    float a = uintBitsToFloat(magnitude);
    precise float result = 0.5 * lx_log1p((a + a) / (1.0 - a));
    float end = uintBitsToFloat(mix(0x7fc00000u, 0x7f800000u, magnitude == 0x3f800000u));
    result = mix(result, end, magnitude >= 0x3f800000u);
    result = mix(result, a, magnitude < 0x39000000u);
    return uintBitsToFloat(floatBitsToUint(result) | (bits & 0x80000000u));
}

//! function lx_asin_half
// asin(sqrt(z)) = head + rest for 0 <= z <= 1/4. The root's head has 12 bits, so that what is subtracted from it or
// from pi/2 is exact; rest takes the root's remainder and the polynomial.
float lx_asin_half(float z, out float rest) {
    precise float s = sqrt(z);
    precise float head = uintBitsToFloat(floatBitsToUint(s) & 0xfffff000u);
    precise float tail = (z - head * head) / (s + head);
    float q = fma(0.042211797, z, 0.024152093);
    q = fma(q, z, 0.04547604);
    q = fma(q, z, 0.07495252);
    q = fma(q, z, 0.16666754);
    precise float sum = fma(s * z, q, tail);
    rest = mix(0.0, sum, z > 0.0);
    return mix(0.0, head, z > 0.0);
}

//! function lx_asin needs lx_asin_half
// x + x^3 P(x^2) up to 1/2, above pi/2 - 2 asin(sqrt((1 - |x|) / 2)).
float lx_asin(float x) {
    float a = abs(x);
    precise float z = mix(a * a, 0.5 - 0.5 * a, a > 0.5);
    float rest;
    precise float head = lx_asin_half(z, rest);
    precise float large = (1.5707964 - (head + head)) - (rest + rest + 4.371139e-08);
    precise float small = head + rest;
    float result = mix(mix(small, a, a < 2.4414062e-4), large, a > 0.5);
    uint sign = floatBitsToUint(x) & 0x80000000u;
    return uintBitsToFloat(mix(floatBitsToUint(result), 0x7fc00000u, floatBitsToUint(a) > 0x3f800000u) | sign);
}

//! function lx_acos needs lx_asin_half
// pi/2 - asin(x) for |x| <= 1/2, else 2 asin(sqrt((1 - |x|) / 2)) or pi less it.
float lx_acos(float x) {
    float a = abs(x);
    precise float z = mix(a * a, 0.5 - 0.5 * a, a > 0.5);
    float rest;
    precise float head = lx_asin_half(z, rest);
    float sign = mix(1.0, -1.0, x < 0.0);
    // pi/2 - sign (head + rest), or offset + 2 sign (head + rest) with offset 0 or pi.
    precise float middle = (1.5707964 - sign * head) - (sign * rest + 4.371139e-08);
    precise float offset = mix(0.0, 3.1415927, x < 0.0);
    precise float outer = (offset + sign * (head + head)) + (sign * (rest + rest) - mix(0.0, 8.742278e-08, x < 0.0));
    float result = mix(middle, outer, a > 0.5);
    return mix(result, uintBitsToFloat(0x7fc00000u), floatBitsToUint(a) > 0x3f800000u);
}

//! function lx_atan_ratio
// atan(numerator / denominator) in [0, pi/2] for two non-negative numbers, not both zero or both infinite.
float lx_atan_ratio(float numerator, float denominator) {
    bool swapped = numerator > denominator;
    float small = mix(numerator, denominator, swapped);
    float large = mix(denominator, numerator, swapped);
    // Vulkan bounds division for divisors up to 2^126 only.
    float scale = mix(1.0, 0.0078125, large > 1e36);
    precise float t = (small * scale) / (large * scale);
    float z = t * t;
    float q = fma(-0.0017875476, z, 0.010887361);
    q = fma(q, z, -0.031127002);
    q = fma(q, z, 0.057906546);
    q = fma(q, z, -0.08400475);
    q = fma(q, z, 0.10951175);
    q = fma(q, z, -0.14264052);
    q = fma(q, z, 0.19998531);
    q = fma(q, z, -0.333333);
    precise float p = fma(t * z, q, t);
    precise float complement = 1.5707964 - (p + 4.371139e-08);
    return mix(p, complement, swapped);
}

//! function lx_atan needs lx_atan_ratio
// Inverse tangent.
float lx_atan(float x) {
    uint magnitude = floatBitsToUint(x) & 0x7fffffffu;
    float result = lx_atan_ratio(uintBitsToFloat(magnitude), 1.0);
    result = mix(result, uintBitsToFloat(magnitude), magnitude > 0x7f800000u);
    return uintBitsToFloat(floatBitsToUint(result) | (floatBitsToUint(x) & 0x80000000u));
}

//! function lx_atan2 needs lx_atan_ratio
// Angle of the point (x, y) in [-pi, pi]; signs of zeros and infinities as in IEEE 754's atan2.
float lx_atan2(float y, float x) {
    uint x_magnitude = floatBitsToUint(x) & 0x7fffffffu;
    uint y_magnitude = floatBitsToUint(y) & 0x7fffffffu;
    // Infinities become 1 against 0 (or 1 against 1), two denormals the whole numbers of their bits, 0 / 0 becomes 0 / 1.
    bool infinite = max(x_magnitude, y_magnitude) >= 0x7f800000u;
    bool tiny = max(x_magnitude, y_magnitude) < 0x00800000u;
    float numerator = mix(uintBitsToFloat(y_magnitude), mix(0.0, 1.0, y_magnitude >= 0x7f800000u), infinite);
    float denominator = mix(uintBitsToFloat(x_magnitude), mix(0.0, 1.0, x_magnitude >= 0x7f800000u), infinite);
    numerator = mix(numerator, float(int(y_magnitude)), tiny);
    denominator = mix(denominator, float(int(x_magnitude)), tiny);
    denominator = mix(denominator, 1.0, (x_magnitude | y_magnitude) == 0u);
    precise float angle = lx_atan_ratio(numerator, denominator);
    angle = mix(angle, 3.1415927 - (angle + 8.742278e-08), floatBitsToInt(x) < 0);
    angle = uintBitsToFloat(floatBitsToUint(angle) | (floatBitsToUint(y) & 0x80000000u));
    return mix(angle, uintBitsToFloat(0x7fc00000u), max(x_magnitude, y_magnitude) > 0x7f800000u);
}

//! function lx_erfinv needs lx_log, lx_sqrt
// x times a polynomial in w = -log(1 - x^2) below w = 6, in sqrt(w) above (Giles, "Approximating the erfinv
// function", 2010; the polynomials are our own).
float lx_erfinv(float x) {
    uint bits = floatBitsToUint(x);
    uint magnitude = bits & 0x7fffffffu;
    precise float w = -lx_log((1.0 - x) * (1.0 + x));
    bool inner = w < 6.0;
    precise float t = mix(lx_sqrt(w), w, inner) - 3.0;
    float q = mix(0.0, -5.8269274e-09, inner);
    q = fma(q, t, mix(0.0, -4.399962e-09, inner));
    q = fma(q, t, mix(-0.00023037122, 4.5554685e-07, inner));
    q = fma(q, t, mix(0.001335133, -1.8840369e-06, inner));
    q = fma(q, t, mix(-0.0034601837, -1.2756575e-05, inner));
    q = fma(q, t, mix(0.005705854, 0.00019546779, inner));
    q = fma(q, t, mix(-0.0076645175, -0.000836075, inner));
    q = fma(q, t, mix(0.009444615, -0.00573856, inner));
    q = fma(q, t, mix(1.0016763, 0.24163033, inner));
    q = fma(q, t, mix(2.8329768, 1.6235421, inner));
    precise float result = q * x;
    float end = uintBitsToFloat(mix(0x7fc00000u, 0x7f800000u | (bits & 0x80000000u), magnitude == 0x3f800000u));
    return mix(result, end, magnitude >= 0x3f800000u);
}

//! function lx_ndtri needs lx_log, lx_sqrt
// The x below which a normal variate lies with probability p. For 0.15 < p < 0.85 an odd polynomial in p - 1/2; else
// w = sqrt(-2 log q) with q the smaller of p and 1 - p, times a polynomial in (w - 3) / (w + 3).
float lx_ndtri(float p) {
    precise float y = p - 0.5;
    float z = y * y;
    float middle = fma(67466.26, z, -18640.004);
    middle = fma(middle, z, 3506.6772);
    middle = fma(middle, z, -91.5345);
    middle = fma(middle, z, 57.931664);
    middle = fma(middle, z, 15.400701);
    middle = fma(middle, z, 5.775661);
    middle = fma(middle, z, 2.6249225);
    middle = fma(middle, z, 2.5066283);
    bool upper = p > 0.5;
    precise float q = mix(p, 1.0 - p, upper);
    float w = lx_sqrt(-2.0 * lx_log(q));
    precise float u = (w - 3.0) / (w + 3.0);
    float tail = fma(0.18046702, u, -0.76468945);
    tail = fma(tail, u, 1.4594454);
    tail = fma(tail, u, -1.7915555);
    tail = fma(tail, u, 1.7767904);
    tail = fma(tail, u, -1.6767585);
    tail = fma(tail, u, 1.5867865);
    tail = fma(tail, u, -1.4892036);
    tail = fma(tail, u, 1.3515142);
    tail = fma(tail, u, -1.1527236);
    tail = fma(tail, u, 0.7574998);
    tail = fma(tail, u, 0.7622068);
    tail = mix(-tail, tail, upper) * w;
    uint bits = floatBitsToUint(p);
    float end = mix(uintBitsToFloat(0x7fc00000u), uintBitsToFloat(0xff800000u), p == 0.0);
    end = mix(end, uintBitsToFloat(0x7f800000u), bits == 0x3f800000u);
    precise float result = mix(middle * y, tail, abs(y) > 0.35);
    return mix(result, end, bits - 1u >= 0x3f7fffffu);
}
//! end

void main() {}
