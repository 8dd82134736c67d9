#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// As integer_arithmetic.glsl, for 64 bits, and conversions between floats and integers if one of them has 64 bits.

//! function lx_int_divide_64
// Rounds toward zero; x / 0 is -1; the most negative value / -1 is itself.
int64_t lx_int_divide_64(int64_t x, int64_t y) {
    bool special = y == 0l || y == -1l;
    int64_t quotient = x / (special ? 1l : y);
    return y == 0l ? -1l : y == -1l ? int64_t(0ul - uint64_t(x)) : quotient;
}

//! function lx_uint_divide_64
// x / 0 is all ones.
uint64_t lx_uint_divide_64(uint64_t x, uint64_t y) {
    return y == 0ul ? ~0ul : x / max(y, 1ul);
}

//! function lx_int_remainder_64 needs lx_int_divide_64
// The sign is the dividend's; the remainder by 0 is x.
int64_t lx_int_remainder_64(int64_t x, int64_t y) {
    return y == 0l ? x : x - lx_int_divide_64(x, y) * y;
}

//! function lx_uint_remainder_64
uint64_t lx_uint_remainder_64(uint64_t x, uint64_t y) {
    return y == 0ul ? x : x % max(y, 1ul);
}

//! function lx_uint_power_64
uint64_t lx_uint_power_64(uint64_t x, uint64_t y) {
    uint64_t result = 1ul;
    for (uint64_t square = x; y != 0ul; y >>= 1, square *= square) result *= (y & 1ul) != 0ul ? square : 1ul;
    return result;
}

//! function lx_int_power_64 needs lx_uint_power_64
// Wraps; a negative exponent truncates the quotient 1 / x^-y toward zero, and 0 to a negative power is 0.
int64_t lx_int_power_64(int64_t x, int64_t y) {
    if (y >= 0l) return int64_t(lx_uint_power_64(uint64_t(x), uint64_t(y)));
    return x == 1l ? 1l : x == -1l ? ((y & 1l) == 0l ? 1l : -1l) : 0l;
}

//! function lx_shift_left_64
// Shifts by 64 or more leave no bit behind.
uint64_t lx_shift_left_64(uint64_t x, uint64_t y) {
    return y < 64ul ? x << uint(y) : 0ul;
}

//! function lx_shift_right_logical_64
uint64_t lx_shift_right_logical_64(uint64_t x, uint64_t y) {
    return y < 64ul ? x >> uint(y) : 0ul;
}

//! function lx_shift_right_arithmetic_64
// Shifts by 64 or more leave the sign in every bit.
int64_t lx_shift_right_arithmetic_64(int64_t x, uint64_t y) {
    return x >> uint(min(y, 63ul));
}

//! function lx_population_count_64
uint64_t lx_population_count_64(uint64_t x) {
    return uint64_t(bitCount(uint(x)) + bitCount(uint(x >> 32)));
}

//! function lx_float_to_int64
// Truncates, stays at the ends of the range, and makes 0 of NaN; so do the others.
int64_t lx_float_to_int64(float x) {
    bool is_nan = (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
    bool inside = abs(x) < 9223372036854775808.0 && !is_nan;
    int64_t beyond = x > 0.0 ? 9223372036854775807l : int64_t(9223372036854775808ul);
    return inside ? int64_t(x) : is_nan ? 0l : beyond;
}

//! function lx_float_to_uint64
uint64_t lx_float_to_uint64(float x) {
    bool is_nan = (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
    bool inside = x > 0.0 && x < 18446744073709551616.0 && !is_nan;
    return inside ? uint64_t(x) : is_nan || x <= 0.0 ? 0ul : ~0ul;
}
//! end

void main() {}
