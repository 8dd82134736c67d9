#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Power in float64. Sums and products in two parts are Dekker's, "A floating-point technique for extending the
// available precision" (1971), and need no fused fma.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
bool lx_isnan_64(double x) { return isnan(x); }
double lx_scale_64(double x, int n) { return ldexp(x, n); }
double lx_exp2_polynomial_64(double r) { return 1.0lf + r; }

//! function lx_product_64
// a b = product + rest, nearly exactly: heads of 26 bits have exact products.
double lx_product_64(double a, double b, out double rest) {
    precise double product = a * b;
    precise double a_head = uint64BitsToDouble(doubleBitsToUint64(a) & 0xfffffffff8000000ul);
    precise double b_head = uint64BitsToDouble(doubleBitsToUint64(b) & 0xfffffffff8000000ul);
    precise double a_tail = a - a_head;
    precise double b_tail = b - b_head;
    precise double missing = ((a_head * b_head - product) + (a_head * b_tail + a_tail * b_head)) + a_tail * b_tail;
    rest = missing;
    return product;
}

//! function lx_log2_parts_64 needs lx_product_64
// log2(a) = high + low for positive finite normal a, good to about 2^-65 relative: with s = (m - 1) / (m + 1) the
// series 2/ln(2) (s + s^3/3 + s^5/5 + ...), of which the first two terms are taken in two parts.
double lx_log2_parts_64(double a, out double low) {
    int64_t shifted = int64_t(doubleBitsToUint64(a)) - 0x3fe6a09e667f3bcdl;
    precise double k = double(int(shifted >> 52));
    uint64_t mantissa = uint64_t((shifted & 0x000fffffffffffffl) + 0x3fe6a09e667f3bcdl);
    precise double m = uint64BitsToDouble(mantissa);
    precise double f = m - 1.0lf;
    precise double d = m + 1.0lf;
    precise double d_rest = m - (d - 1.0lf);
    precise double s = f / d;
    double part;
    precise double back = lx_product_64(s, d, part);
    precise double s_rest = (((f - back) - part) - s * d_rest) / d;
    double square_rest;
    precise double z = lx_product_64(s, s, square_rest);
    precise double z_rest = square_rest + 2.0lf * (s * s_rest);
    double q = fma(0.058615850803995374lf, z, 0.05853118574408186lf);
    q = fma(q, z, 0.06667402331812168lf);
    q = fma(q, z, 0.07692297481537068lf);
    q = fma(q, z, 0.090909091676938lf);
    q = fma(q, z, 0.11111111110827954lf);
    q = fma(q, z, 0.14285714285714682lf);
    q = fma(q, z, 0.2lf);
    // t = z / 3 + z^2 q
    double third_rest;
    precise double third = lx_product_64(z, 0.3333333333333333lf, third_rest);
    precise double fifth = (z * z) * q;
    precise double t = third + fifth;
    precise double t_rest = ((third - t) + fifth)
        + (third_rest + (z * 1.850371707708594e-17lf + z_rest * 0.3333333333333333lf));
    // first = 2/ln(2) s, then first + first t
    double first_rest;
    precise double first = lx_product_64(s, 2.8853900817779268lf, first_rest);
    first_rest = first_rest + (s * 4.0710547481862066e-17lf + s_rest * 2.8853900817779268lf);
    double second_rest;
    precise double second = lx_product_64(first, t, second_rest);
    second_rest = second_rest + (first * t_rest + first_rest * t);
    precise double sum = first + second;
    precise double sum_rest = ((first - sum) + second) + (first_rest + second_rest);
    precise double high = k + sum;
    precise double remainder = mix((k - high) + sum, 0.0lf, k == 0.0lf) + sum_rest;
    low = remainder;
    return high;
}

//! function lx_pow_64 needs lx_log2_parts_64, lx_product_64, lx_exp2_polynomial_64, lx_scale_64, lx_isnan_64
// x^y with NumPy's (IEEE 754 pow's) special values.
double lx_pow_64(double x, double y) {
    uint64_t sign_bit = 0x8000000000000000ul, infinite = 0x7ff0000000000000ul;
    uint64_t x_bits = doubleBitsToUint64(x) & ~sign_bit, y_bits = doubleBitsToUint64(y) & ~sign_bit;
    // A denormal base is read as an integer: a 2^-1074.
    bool tiny = x_bits < 0x0010000000000000ul;
    precise double low;
    double magnitude = tiny ? double(int64_t(x_bits)) : uint64BitsToDouble(x_bits);
    precise double high = lx_log2_parts_64(magnitude, low);
    precise double shifted = high - 1074.0lf;
    low = mix(low, low + (high - (shifted + 1074.0lf)), tiny);
    high = mix(high, shifted, tiny);
    high = x_bits == infinite ? uint64BitsToDouble(infinite) : high;
    high = x_bits == 0ul ? uint64BitsToDouble(infinite | sign_bit) : high;

    // y log2|x| = n + r.
    double rest;
    precise double product = lx_product_64(y, high, rest);
    precise double n = roundEven(product);
    precise double r = (product - n) + (rest + y * low);
    precise double p = lx_exp2_polynomial_64(r);
    double result = lx_scale_64(p, int(clamp(n, -1200.0lf, 1200.0lf)));
    result = mix(result, 0.0lf, product < -1080.0lf);
    result = mix(result, uint64BitsToDouble(infinite), product > 1025.0lf);

    // Every double from 2^53 up is even; below, the last bit of the whole part tells.
    bool y_large = y_bits >= 0x4340000000000000ul;
    int64_t y_whole = y_large ? 0l : int64_t(y);
    bool y_integer = y_large || double(y_whole) == y;
    uint64_t sign = doubleBitsToUint64(x) & (y_integer ? uint64_t(y_whole) << 63 : 0ul);
    result = uint64BitsToDouble(doubleBitsToUint64(result) | sign);
    bool root_of_negative = doubleBitsToUint64(x) > sign_bit && x_bits < infinite;
    bool undefined = root_of_negative && !y_integer || lx_isnan_64(x) || lx_isnan_64(y);
    result = mix(result, uint64BitsToDouble(0x7ff8000000000000ul), undefined);
    // 1^y and x^0 are 1 even for NaN; (-1)^inf is 1, too.
    uint64_t one = 0x3ff0000000000000ul;
    result = mix(result, 1.0lf, x_bits == one && y_bits == infinite);
    return mix(result, 1.0lf, doubleBitsToUint64(x) == one || y_bits == 0ul);
}
//! end

void main() {}
