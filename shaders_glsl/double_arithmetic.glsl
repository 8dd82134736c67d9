#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Arithmetic in float64, for devices that have it.

//! function lx_isnan_64
// Is x NaN?
bool lx_isnan_64(double x) {
    return (doubleBitsToUint64(x) & 0x7ffffffffffffffful) > 0x7ff0000000000000ul;
}

//! function lx_maximum_64 needs lx_isnan_64
// The larger of both; NaN where either is NaN.
double lx_maximum_64(double x, double y) {
    double larger = x > y ? x : y;
    larger = lx_isnan_64(y) ? y : larger;
    return lx_isnan_64(x) ? x : larger;
}

//! function lx_minimum_64 needs lx_isnan_64
// The smaller of both; NaN where either is NaN.
double lx_minimum_64(double x, double y) {
    double smaller = x < y ? x : y;
    smaller = lx_isnan_64(y) ? y : smaller;
    return lx_isnan_64(x) ? x : smaller;
}

//! function lx_sign_64 needs lx_isnan_64
// -1, 0 or 1; NaN for NaN.
double lx_sign_64(double x) {
    uint64_t bits = doubleBitsToUint64(x);
    double one = uint64BitsToDouble(0x3ff0000000000000ul | (bits & 0x8000000000000000ul));
    return lx_isnan_64(x) ? x : (bits << 1) == 0ul ? 0.0lf : one;
}

//! function lx_divide_64
double lx_divide_64(double x, double y) { return x / y; }

//! function lx_add_zero_64
// x + 0.0: x, but 0.0 for -0.0.
double lx_add_zero_64(double x) { return doubleBitsToUint64(x) == 0x8000000000000000ul ? 0.0lf : x; }

//! function lx_multiply_by_zero_64
// x zero, for a zero of either sign.
double lx_multiply_by_zero_64(double x, double zero) {
    uint64_t bits = doubleBitsToUint64(x);
    uint64_t sign = (bits ^ doubleBitsToUint64(zero)) & 0x8000000000000000ul;
    bool undefined = (bits & 0x7ffffffffffffffful) >= 0x7ff0000000000000ul;
    return uint64BitsToDouble(undefined ? 0x7ff8000000000000ul : sign);
}

//! function lx_divide_by_zero_64
// x / zero, for a zero of either sign.
double lx_divide_by_zero_64(double x, double zero) {
    uint64_t bits = doubleBitsToUint64(x);
    uint64_t sign = (bits ^ doubleBitsToUint64(zero)) & 0x8000000000000000ul;
    bool undefined = (bits << 1) == 0ul || (bits & 0x7ffffffffffffffful) > 0x7ff0000000000000ul;
    return uint64BitsToDouble(undefined ? 0x7ff8000000000000ul : 0x7ff0000000000000ul | sign);
}

//! function lx_divide_zero_64
// zero / y, for a zero of either sign.
double lx_divide_zero_64(double zero, double y) {
    uint64_t bits = doubleBitsToUint64(y);
    uint64_t sign = (bits ^ doubleBitsToUint64(zero)) & 0x8000000000000000ul;
    bool undefined = (bits << 1) == 0ul || (bits & 0x7ffffffffffffffful) > 0x7ff0000000000000ul;
    return uint64BitsToDouble(undefined ? 0x7ff8000000000000ul : sign);
}

//! function lx_fmod_64 needs lx_isnan_64
// x - n y, n being x / y truncated: exact. Subtracts y times powers of two, from the largest that fits down.
double lx_fmod_64(double x, double y) {
    double rest = abs(x), divisor = abs(y);
    uint64_t infinity = 0x7ff0000000000000ul;
    bool undefined = divisor == 0.0lf || doubleBitsToUint64(rest) >= infinity || lx_isnan_64(y);
    if (undefined) return uint64BitsToDouble(0x7ff8000000000000ul);
    if (rest >= divisor) {
        // A denormal divisor read as an integer, divisor 2^1074, has an exponent.
        uint64_t bits = doubleBitsToUint64(divisor);
        bool tiny = bits < 0x0010000000000000ul;
        int exponent = int((tiny ? doubleBitsToUint64(double(int64_t(bits))) : bits) >> 52) - (tiny ? 1074 : 0);
        int distance = int(doubleBitsToUint64(rest) >> 52) - exponent;
        precise double part = divisor;
        for (int step = 0; step < distance; ++step) part = part + part;
        for (int step = distance; step >= 0; --step) {
            precise double without = rest - part;
            rest = rest >= part ? without : rest;
            part = 0.5lf * part;
        }
    }
    uint64_t sign = doubleBitsToUint64(x) & 0x8000000000000000ul;
    return uint64BitsToDouble(doubleBitsToUint64(rest) | sign);
}

//! function lx_remainder_64 needs lx_fmod_64, lx_isnan_64
// x - floor(x / y) y with the sign of y (Python's %), rounded once where y is added; a zero has the sign of y.
double lx_remainder_64(double x, double y) {
    precise double rest = lx_fmod_64(x, y);
    bool negative = (unpackDouble2x32(y).y & 0x80000000u) != 0u;
    if (lx_isnan_64(rest)) return rest;
    if (rest == 0.0LF) return negative ? -0.0LF : 0.0LF;
    precise double moved = rest + y;
    return (rest < 0.0LF) != negative ? moved : rest;
}

//! function lx_ceil_64
double lx_ceil_64(double x) { return ceil(x); }

//! function lx_with_sign_64
// A number that is not negative, with the sign of x.
double lx_with_sign_64(double size, double x) {
    return uint64BitsToDouble(doubleBitsToUint64(size) | (doubleBitsToUint64(x) & 0x8000000000000000ul));
}

//! function lx_round_64 needs lx_with_sign_64
// The nearest integer, halves to the even one. By floor: where the processor has no instruction for a subgroup's doubles,
// Mesa's roundEven leaves numbers above 2^24 as they are and halves to the odd one.
double lx_round_64(double x) {
    double size = abs(x), whole = floor(size);
    precise double rest = size - whole;
    bool is_odd = 2.0lf * floor(0.5lf * whole) != whole;
    bool is_up = rest > 0.5lf || (rest == 0.5lf && is_odd);
    return lx_with_sign_64(mix(whole, whole + 1.0lf, is_up), x);
}

//! function lx_truncate_64 needs lx_with_sign_64
// x without its fraction. By floor, as Mesa's trunc leaves numbers above 2^24 as they are, too.
double lx_truncate_64(double x) { return lx_with_sign_64(floor(abs(x)), x); }

//! function lx_sqrt_64
double lx_sqrt_64(double x) { return sqrt(x); }

//! function lx_rsqrt_64
double lx_rsqrt_64(double x) { return 1.0lf / sqrt(x); }

//! function lx_power_of_two_64
// 2^n for -1022 <= n <= 1023.
double lx_power_of_two_64(int n) { return uint64BitsToDouble(uint64_t(n + 1023) << 52); }

//! function lx_double_to_int64 needs lx_isnan_64
int64_t lx_double_to_int64(double x) {
    bool is_nan = lx_isnan_64(x);
    bool inside = abs(x) < 9223372036854775808.0lf && !is_nan;
    int64_t beyond = x > 0.0lf ? 9223372036854775807l : int64_t(9223372036854775808ul);
    return inside ? int64_t(x) : is_nan ? 0l : beyond;
}

//! function lx_double_to_uint64 needs lx_isnan_64
uint64_t lx_double_to_uint64(double x) {
    bool is_nan = lx_isnan_64(x);
    bool inside = x > 0.0lf && x < 18446744073709551616.0lf && !is_nan;
    return inside ? uint64_t(x) : is_nan || x <= 0.0lf ? 0ul : ~0ul;
}

//! function lx_double_to_int needs lx_isnan_64
int lx_double_to_int(double x) {
    return int(clamp(lx_isnan_64(x) ? 0.0lf : x, -2147483648.0lf, 2147483647.0lf));
}

//! function lx_double_to_uint needs lx_isnan_64
uint lx_double_to_uint(double x) {
    return uint(clamp(lx_isnan_64(x) ? 0.0lf : x, 0.0lf, 4294967295.0lf));
}
//! end

void main() {}
