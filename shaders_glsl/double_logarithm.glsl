#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Logarithms, the inverse hyperbolic functions and the cube root in float64. Polynomials are our own fits:
// interpolation at Chebyshev's points with 260 bits, coefficients then rounded. Results do not depend on fused fma.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
bool lx_isnan_64(double x) { return isnan(x); }
double lx_power_of_two_64(int n) { return ldexp(1.0lf, n); }
double lx_copy_sign_64(double x, double y) { return y < 0.0lf ? -abs(x) : abs(x); }

//! function lx_log_split_64
// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2) for positive finite x; denormals are read as integers, so that
// they count on devices that flush them, too.
double lx_log_split_64(double x, out int k) {
    int64_t bits = int64_t(doubleBitsToUint64(x));
    bool tiny = bits < 0x0010000000000000l;
    int64_t normal = tiny ? int64_t(doubleBitsToUint64(double(bits))) : bits;
    int64_t shifted = normal - 0x3fe6a09e667f3bcdl;
    k = int(shifted >> 52) - (tiny ? 1074 : 0);
    uint64_t mantissa = uint64_t((shifted & 0x000fffffffffffffl) + 0x3fe6a09e667f3bcdl);
    precise double f = uint64BitsToDouble(mantissa) - 1.0lf;
    return f;
}

//! function lx_log_tail_64
// log(1 + f) = f - f^2 / 2 + tail: with s = f / (2 + f) the series 2 s + 2/3 s^3 + ... (fdlibm's arrangement).
double lx_log_tail_64(double f) {
    precise double s = f / (2.0lf + f);
    double z = s * s;
    double q = fma(0.1308675766695207lf, z, 0.13268760562036724lf);
    q = fma(q, z, 0.15386240172447838lf);
    q = fma(q, z, 0.18181795631498243lf);
    q = fma(q, z, 0.22222222391794727lf);
    q = fma(q, z, 0.28571428570803253lf);
    q = fma(q, z, 0.4000000000000088lf);
    q = fma(q, z, 0.6666666666666666lf);
    precise double tail = s * (0.5lf * f * f + z * q);
    return tail;
}

//! function lx_log_sum_64 needs lx_log_tail_64
// k ln 2 + log(1 + f), ln 2 in two parts (Cody and Waite).
double lx_log_sum_64(int k, double f) {
    double power = double(k);
    precise double half_square = 0.5lf * f * f;
    precise double lower = lx_log_tail_64(f) + power * 7.371002565167799e-13lf;
    precise double result = power * 0.6931471805592082lf - ((half_square - lower) - f);
    return result;
}

//! function lx_log_special_64
// The logarithm's values outside of (0, inf): -inf at both zeros, NaN below and for NaN, inf at inf.
double lx_log_special_64(double x, double result) {
    uint64_t bits = doubleBitsToUint64(x);
    uint64_t below = (bits << 1) == 0ul ? 0xfff0000000000000ul : 0x7ff8000000000000ul;
    double other = bits == 0x7ff0000000000000ul ? x : uint64BitsToDouble(below);
    return mix(result, other, bits - 1ul >= 0x7feffffffffffffful);
}

//! function lx_log_64 needs lx_log_split_64, lx_log_sum_64, lx_log_special_64
// Natural logarithm.
double lx_log_64(double x) {
    int k;
    double f = lx_log_split_64(x, k);
    return lx_log_special_64(x, lx_log_sum_64(k, f));
}

//! function lx_log2_64 needs lx_log_split_64, lx_log_tail_64, lx_log_special_64
// Binary logarithm; exact for powers of two. log(1 + f) in two parts, of which the first has 26 bits, as has that of
// log2(e): their product is exact.
double lx_log2_64(double x) {
    int k;
    double f = lx_log_split_64(x, k);
    precise double half_square = 0.5lf * f * f;
    precise double high = uint64BitsToDouble(doubleBitsToUint64(f - half_square) & 0xfffffffff8000000ul);
    precise double low = ((f - high) - half_square) + lx_log_tail_64(f);
    precise double head = high * 1.4426950216293335lf;
    precise double tail = (low + high) * 1.9259629911266175e-08lf + low * 1.4426950216293335lf;
    precise double whole = double(k);
    precise double sum = whole + head;
    precise double larger = (whole - sum) + head;
    larger = k == 0 ? 0.0lf : larger;
    precise double result = sum + (tail + larger);
    return lx_log_special_64(x, result);
}

//! function lx_log1p_64 needs lx_log_split_64, lx_log_sum_64, lx_power_of_two_64, lx_isnan_64
// log(1 + x): 1 + x = u + c exactly, u = 2^k m, and c 2^-k is added to m - 1 before the polynomial.
double lx_log1p_64(double x) {
    precise double u = 1.0lf + x;
    precise double c = mix(1.0lf - (u - x), x - (u - 1.0lf), x < 1.0lf);
    int k;
    precise double f = lx_log_split_64(u, k);
    f = f + c * lx_power_of_two_64(clamp(-k, -1022, 1022));
    uint64_t bits = doubleBitsToUint64(x);
    uint64_t end = bits == 0xbff0000000000000ul ? 0xfff0000000000000ul : 0x7ff8000000000000ul;
    double result = mix(lx_log_sum_64(k, f), uint64BitsToDouble(end), bits >= 0xbff0000000000000ul);
    bool same = lx_isnan_64(x) || bits == 0x7ff0000000000000ul || abs(x) < 5.551115123125783e-17lf;
    return mix(result, x, same);
}

//! function lx_asinh_64 needs lx_log1p_64, lx_copy_sign_64
// log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|; log(2 a) where a^2 would overflow.
double lx_asinh_64(double x) {
    double a = abs(x);
    bool large = a > 1.0e150lf;
    precise double square = a * a;
    precise double u = a + square / (1.0lf + sqrt(1.0lf + square));
    precise double result = lx_log1p_64(mix(u, a, large)) + mix(0.0lf, 0.6931471805599453lf, large);
    return lx_copy_sign_64(result, x);
}

//! function lx_acosh_64 needs lx_log1p_64
// log1p(t + sqrt(2 t + t^2)), t = x - 1; log(2 x) where t^2 would overflow.
double lx_acosh_64(double x) {
    bool large = x > 1.0e150lf;
    precise double t = x - 1.0lf;
    precise double u = t + sqrt(fma(t, t, t + t));
    precise double result = lx_log1p_64(mix(u, x, large)) + mix(0.0lf, 0.6931471805599453lf, large);
    return mix(result, uint64BitsToDouble(0x7ff8000000000000ul), x < 1.0lf);
}

//! function lx_atanh_64 needs lx_log1p_64, lx_copy_sign_64, lx_isnan_64
// log1p(2 a / (1 - a)) / 2, a = |x|.
double lx_atanh_64(double x) {
    double a = abs(x);
    precise double result = 0.5lf * lx_log1p_64((a + a) / (1.0lf - a));
    result = mix(result, a, a < 1.0e-9lf);
    double end = uint64BitsToDouble(a == 1.0lf ? 0x7ff0000000000000ul : 0x7ff8000000000000ul);
    return lx_copy_sign_64(mix(result, end, a >= 1.0lf || lx_isnan_64(x)), x);
}

//! function lx_cbrt_64 needs lx_copy_sign_64
// y = x^(-1/3) from the exponent's bits, two Householder steps, and one Newton step on x y^2. The ends of the range
// are brought inwards, so that no product over- or underflows.
double lx_cbrt_64(double x) {
    double a = abs(x);
    uint64_t bits = doubleBitsToUint64(a);
    bool tiny = bits < 0x0350000000000000ul;
    bool huge = bits >= 0x7c00000000000000ul;
    precise double v = a * mix(mix(1.0lf, 1.0842021724855044e-19lf, huge), 5.846006549323612e+48lf, tiny);
    int high = int(doubleBitsToUint64(v) >> 32);
    precise double y = uint64BitsToDouble(uint64_t(0x553eec33 - high / 3) << 32);
    precise double e = 1.0lf - (v * y) * (y * y);
    y = y + y * (e * fma(e, fma(e, 0.1728395061728395lf, 0.2222222222222222lf), 0.3333333333333333lf));
    e = 1.0lf - (v * y) * (y * y);
    y = y + y * (e * fma(e, fma(e, 0.1728395061728395lf, 0.2222222222222222lf), 0.3333333333333333lf));
    precise double square = y * y;
    precise double root = v * square;
    root = root + (v - root * (root * root)) * (square * 0.3333333333333333lf);
    root = root * mix(mix(1.0lf, 2097152.0lf, huge), 5.551115123125783e-17lf, tiny);
    root = mix(root, a, bits >= 0x7ff0000000000000ul || bits == 0ul);
    return lx_copy_sign_64(root, x);
}
//! end

void main() {}
