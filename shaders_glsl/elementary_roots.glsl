#version 460
// Roots of unity in float32.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
float lx_sin_polynomial(float r) { return r; }
float lx_cos_polynomial(float r) { return 1.0 - 0.5 * r * r; }

//! function lx_unit_root needs lx_sin_polynomial, lx_cos_polynomial
// exp(2 pi i p / length) for 0 <= p < length <= 2^28. With the nearest quarter q of a turn, 4p - q length is an exact
// count of parts of length / 4 from it; a quarter that is not the nearest, for p between two, does no harm.
vec2 lx_unit_root(int p, int length) {
    float part = 1.0 / float(length);
    int quarter = int(float(p) * (4.0 * part) + 0.5);
    float angle = float(4 * p - quarter * length) * (1.5707964 * part);
    float s = lx_sin_polynomial(angle), c = lx_cos_polynomial(angle);
    vec2 root = (quarter & 1) != 0 ? vec2(-s, c) : vec2(c, s);
    return (quarter & 2) != 0 ? -root : root;
}
//! end

void main() {}
