#version 460
// Roots of unity in float64.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
double lx_sin_polynomial_64(double r, double rest) { return r + rest; }
double lx_cos_polynomial_64(double r, double rest) { return 1.0lf - 0.5lf * r * r - rest; }

//! function lx_unit_root_64 needs lx_sin_polynomial_64, lx_cos_polynomial_64
// exp(2 pi i p / length) for 0 <= p < length <= 2^29. With the nearest quarter q of a turn, 4p - q length is an exact
// count of parts of length / 4 from it; a quarter that is not the nearest, for p between two, does no harm.
dvec2 lx_unit_root_64(int p, int length) {
    int quarter = int(float(p) * (4.0 / float(length)) + 0.5);
    double angle = double(4 * p - quarter * length) * (1.5707963267948966lf / double(length));
    double s = lx_sin_polynomial_64(angle, 0.0lf), c = lx_cos_polynomial_64(angle, 0.0lf);
    dvec2 root = (quarter & 1) != 0 ? dvec2(-s, c) : dvec2(c, s);
    return (quarter & 2) != 0 ? -root : root;
}
//! end

void main() {}
