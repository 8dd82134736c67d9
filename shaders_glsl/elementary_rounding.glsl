#version 460
// Whole numbers near a float32. A result of zero has the sign of the argument.

//! function lx_ceil
// The smallest whole number that is not below x.
float lx_ceil(float x) { return uintBitsToFloat(floatBitsToUint(ceil(x)) | (floatBitsToUint(x) & 0x80000000u)); }

//! function lx_truncate
// x without its fraction.
float lx_truncate(float x) { return uintBitsToFloat(floatBitsToUint(trunc(x)) | (floatBitsToUint(x) & 0x80000000u)); }

//! function lx_round
// The nearest whole number; halves go to the even one.
float lx_round(float x) { return uintBitsToFloat(floatBitsToUint(roundEven(x)) | (floatBitsToUint(x) & 0x80000000u)); }
//! end

void main() {}
