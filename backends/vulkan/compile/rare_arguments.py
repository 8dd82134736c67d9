"""Functions of GPUs that compute what few arguments need only where an invocation of a subgroup has such an argument.

The library computes it for every argument and chooses, because a CPU driver computes both sides of a branch anyway.
"""

from __future__ import annotations

from lavax.shaders_glsl import functions_for

# Angles below 12,800 are reduced by four parts of pi/2 (Cody and Waite, "Software Manual for the Elementary Functions",
# 1980). A quotient has at most 13 bits and the first three parts 8, 11 and 11, so that three products, and differences
# from the first two of them, are exact, whether `fma` rounds once or twice. r is within 1 unit, for each such float.
_REDUCED_BY_PARTS = """float lx_reduce_angle(float x, out uint quadrant) {
    float a = abs(x);
    if (a < 12800.0) {
        precise float shifted = fma(a, 0.63661977, 12582912.0);
        precise float k = shifted - 12582912.0;
        precise float r = fma(-k, 1.5703125, a);
        r = fma(-k, 0.0004837513, r);
        r = fma(-k, 7.5495336e-08, r);
        r = fma(-k, 2.563344e-12, r);
        quadrant = floatBitsToUint(shifted);
        return r;
    }
    return reduce_any_angle(x, quadrant);
}
"""
# Of x^2 up to 0.9975 the logarithm alone, without a root; 1 - x^2 is never 0, denormal or infinite for |x| < 1.
_INVERSE_ERROR = """float lx_erfinv(float x) {
    precise float u = (1.0 - x) * (1.0 + x);
    float k;
    float f = lx_log_split(u, k);
    precise float w = -lx_log_polynomial(k, f);
    float q;
    if (w < 6.0) {
        precise float t = w - 3.0;
        q = fma(-5.8269274e-09, t, -4.399962e-09);
        q = fma(q, t, 4.5554685e-07);
        q = fma(q, t, -1.8840369e-06);
        q = fma(q, t, -1.2756575e-05);
        q = fma(q, t, 0.00019546779);
        q = fma(q, t, -0.000836075);
        q = fma(q, t, -0.00573856);
        q = fma(q, t, 0.24163033);
        q = fma(q, t, 1.6235421);
    } else {
        precise float t = lx_sqrt(w) - 3.0;
        q = fma(-0.00023037122, t, 0.001335133);
        q = fma(q, t, -0.0034601837);
        q = fma(q, t, 0.005705854);
        q = fma(q, t, -0.0076645175);
        q = fma(q, t, 0.009444615);
        q = fma(q, t, 1.0016763);
        q = fma(q, t, 2.8329768);
    }
    precise float result = q * x;
    uint bits = floatBitsToUint(x);
    uint magnitude = bits & 0x7fffffffu;
    float end = uintBitsToFloat(mix(0x7fc00000u, 0x7f800000u | (bits & 0x80000000u), magnitude == 0x3f800000u));
    return mix(result, end, magnitude >= 0x3f800000u);
}
"""


def _of_parts(library: str) -> str:
    return library.replace("lx_reduce_angle(", "reduce_any_angle(") + _REDUCED_BY_PARTS


def _inverse_error(library: str) -> str:
    return _INVERSE_ERROR


_FORMS = {"lx_reduce_angle": _of_parts, "lx_erfinv": _inverse_error}


def with_rare_arguments_apart(source: str) -> str:
    """The shader with the forms of these functions that branch."""
    for function in functions_for(_FORMS):
        if function.name in _FORMS and function.text in source:
            source = source.replace(function.text, _FORMS[function.name](function.text))
    return source
