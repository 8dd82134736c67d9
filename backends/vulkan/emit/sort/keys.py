"""GLSL functions that give elements of up to 32 bits as unsigned integers in the same order."""

from __future__ import annotations

# Keys are unsigned integers in the order of the elements; zeros are equal, and NaN is the greatest.
_KEY_OF_FLOAT = """uint key_of(float x) {
    uint bits = floatBitsToUint(x), magnitude = bits & 0x7fffffffu;
    uint key = bits > 0x80000000u ? ~bits : magnitude | 0x80000000u;
    return magnitude > 0x7f800000u ? 0xffffffffu : key;
}"""
KEYS = {
    "float": _KEY_OF_FLOAT,
    "int": "uint key_of(int x) { return uint(x) ^ 0x80000000u; }",
    "uint": "uint key_of(uint x) { return x; }",
}
