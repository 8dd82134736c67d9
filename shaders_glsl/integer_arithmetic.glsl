#version 460
// Integer arithmetic with every case defined, and conversions from floats to integers.

//! function lx_int_divide
// Rounds toward zero; x / 0 is -1; the most negative value / -1 is itself.
int lx_int_divide(int x, int y) {
    bool special = y == 0 || y == -1;
    int quotient = x / (special ? 1 : y);
    return y == 0 ? -1 : y == -1 ? int(0u - uint(x)) : quotient;
}
//! function lx_uint_divide
// x / 0 is all ones.
uint lx_uint_divide(uint x, uint y) {
    return y == 0u ? 0xffffffffu : x / max(y, 1u);
}
//! function lx_int_remainder needs lx_int_divide
// The sign is the dividend's; the remainder by 0 is x.
int lx_int_remainder(int x, int y) {
    return y == 0 ? x : x - lx_int_divide(x, y) * y;
}
//! function lx_uint_remainder
uint lx_uint_remainder(uint x, uint y) {
    return y == 0u ? x : x % max(y, 1u);
}
//! function lx_uint_power
uint lx_uint_power(uint x, uint y) {
    uint result = 1u;
    for (uint square = x; y != 0u; y >>= 1, square *= square) result *= (y & 1u) != 0u ? square : 1u;
    return result;
}
//! function lx_int_power needs lx_uint_power
// Wraps; a negative exponent truncates the quotient 1 / x^-y toward zero, and 0 to a negative power is 0.
int lx_int_power(int x, int y) {
    if (y >= 0) return int(lx_uint_power(uint(x), uint(y)));
    return x == 1 ? 1 : x == -1 ? ((y & 1) == 0 ? 1 : -1) : 0;
}
//! function lx_shift_left
// Shifts by 32 or more leave no bit behind.
uint lx_shift_left(uint x, uint y) {
    return y < 32u ? x << y : 0u;
}
//! function lx_shift_right_logical
uint lx_shift_right_logical(uint x, uint y) {
    return y < 32u ? x >> y : 0u;
}
//! function lx_shift_right_arithmetic
// Shifts by 32 or more leave the sign in every bit.
int lx_shift_right_arithmetic(int x, uint y) {
    return x >> min(y, 31u);
}
//! function lx_float_to_int
// Truncates, stays at the ends of the range, and makes 0 of NaN.
int lx_float_to_int(float x) {
    bool is_nan = (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
    int truncated = int(clamp(is_nan ? 0.0 : x, -2147483648.0, 2147483520.0));
    return !is_nan && x >= 2147483648.0 ? 2147483647 : truncated;
}
//! function lx_float_to_uint
uint lx_float_to_uint(float x) {
    bool is_nan = (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
    uint truncated = uint(clamp(is_nan ? 0.0 : x, 0.0, 4294967040.0));
    return !is_nan && x >= 4294967296.0 ? 4294967295u : truncated;
}
//! end

void main() {}
