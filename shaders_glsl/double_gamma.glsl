#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// The logarithm of the gamma function and its derivative in float64. Formulas: Abramowitz and Stegun, "Handbook of
// Mathematical Functions" (1964), 6.1.15, 6.1.17, 6.1.40, 6.3.5, 6.3.7 and 6.3.18. Polynomials are our own fits:
// interpolation at Chebyshev's points with 260 bits, coefficients then rounded. Results do not depend on fused fma.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
bool lx_isnan_64(double x) { return isnan(x); }
double lx_round_64(double x) { return roundEven(x); }
double lx_log_64(double x) { return double(log(float(x))); }
double lx_sin_polynomial_64(double r, double rest) { return double(sin(float(r + rest))); }
double lx_cos_polynomial_64(double r, double rest) { return double(cos(float(r + rest))); }

//! function lx_lgamma_near_one_64
// log(gamma(1 + t)) for -1/4 <= t <= 1/2.
double lx_lgamma_near_one_64(double t) {
    double q = fma(0.006837511584303814lf, t, -0.025986773971407036lf);
    q = fma(q, t, 0.04671230819605673lf);
    q = fma(q, t, -0.056518139297869995lf);
    q = fma(q, t, 0.05790211255423161lf);
    q = fma(q, t, -0.058977697054169845lf);
    q = fma(q, t, 0.06224250004458276lf);
    q = fma(q, t, -0.06660002797561868lf);
    q = fma(q, t, 0.07144286096823818lf);
    q = fma(q, t, -0.07693834399295793lf);
    q = fma(q, t, 0.0833539229301034lf);
    q = fma(q, t, -0.09095377585749281lf);
    q = fma(q, t, 0.10009943889128511lf);
    q = fma(q, t, -0.11133427134128401lf);
    q = fma(q, t, 0.1255096701225694lf);
    q = fma(q, t, -0.14404989670121374lf);
    q = fma(q, t, 0.1695571769891583lf);
    q = fma(q, t, -0.20738555102909395lf);
    q = fma(q, t, 0.27058080842783183lf);
    q = fma(q, t, -0.4006856343865304lf);
    q = fma(q, t, 0.8224670334241131lf);
    q = fma(q, t, -0.5772156649015329lf);
    return q * t;
}

//! function lx_lgamma_near_two_64
// log(gamma(2 + t)) for -1/2 <= t <= 1/2.
double lx_lgamma_near_two_64(double t) {
    double q = fma(6.379047507619774e-08lf, t, -1.3412819758517287e-07lf);
    q = fma(q, t, 2.0304806751615227e-07lf);
    q = fma(q, t, -4.303558760359961e-07lf);
    q = fma(q, t, 9.578663334114758e-07lf);
    q = fma(q, t, -2.0449201467015115e-06lf);
    q = fma(q, t, 4.374374916915131e-06lf);
    q = fma(q, t, -9.438458716242811e-06lf);
    q = fma(q, t, 2.050726741605779e-05lf);
    q = fma(q, t, -4.4926351103833334e-05lf);
    q = fma(q, t, 9.945750909889392e-05lf);
    q = fma(q, t, -0.00022315475074520367lf);
    q = fma(q, t, 0.0005096695248853096lf);
    q = fma(q, t, -0.0011927539120010226lf);
    q = fma(q, t, 0.002890510330738737lf);
    q = fma(q, t, -0.0073855510286681535lf);
    q = fma(q, t, 0.02058080842778457lf);
    q = fma(q, t, -0.06735230105319814lf);
    q = fma(q, t, 0.3224670334241132lf);
    q = fma(q, t, 0.42278433509846713lf);
    return q * t;
}

//! function lx_lgamma_moderate_64 needs lx_lgamma_near_one_64, lx_lgamma_near_two_64, lx_log_64
// log(gamma(y)) for -1/2 < y < 8, from that in [0.75, 1.5) or [1.5, 2.5) by the recurrence.
double lx_lgamma_moderate_64(double y) {
    double n = floor(y + 0.5lf);
    precise double above = mix(1.0lf, y - 1.0lf, n > 2.5lf);
    above *= mix(1.0lf, y - 2.0lf, n > 3.5lf);
    above *= mix(1.0lf, y - 3.0lf, n > 4.5lf);
    above *= mix(1.0lf, y - 4.0lf, n > 5.5lf);
    above *= mix(1.0lf, y - 5.0lf, n > 6.5lf);
    above *= mix(1.0lf, y - 6.0lf, n > 7.5lf);
    bool is_near_one = y >= 0.75lf && y < 1.5lf;
    bool is_near_zero = y >= -0.25lf && y < 0.5lf;
    precise double below = abs(y * mix(1.0lf, y + 1.0lf, y < -0.25lf));
    precise double t = mix(y - mix(n, 1.0lf, y < 1.5lf), y, y < 0.5lf);
    double base = mix(lx_lgamma_near_two_64(t), lx_lgamma_near_one_64(t), is_near_one || is_near_zero);
    double power = lx_log_64(mix(above, below, y < 0.75lf));
    precise double result = base + mix(power, -power, y < 0.75lf);
    return result;
}

//! function lx_lgamma_large_64 needs lx_log_64
// log(gamma(a)) for a >= 8 by Stirling's series.
double lx_lgamma_large_64(double a) {
    double u = 1.0lf / mix(a, 1.0e100lf, a > 1.0e100lf);
    double z = u * u;
    double q = fma(0.005065900917286762lf, z, -0.0018903827679134816lf);
    q = fma(q, z, 0.0008414700808282861lf);
    q = fma(q, z, -0.0005952365844641508lf);
    q = fma(q, z, 0.0007936507897522159lf);
    q = fma(q, z, -0.002777777777773988lf);
    q = fma(q, z, 0.08333333333333333lf);
    precise double result = (a - 0.5lf) * (lx_log_64(a) - 1.0lf) + fma(q, u, 0.4189385332046727lf);
    return result;
}

//! function lx_sine_of_turn_64 needs lx_sin_polynomial_64, lx_cos_polynomial_64
// sin(pi d) for 0 <= d <= 1/2.
double lx_sine_of_turn_64(double d) {
    bool far = d > 0.25lf;
    double angle = 3.141592653589793lf * mix(d, 0.5lf - d, far);
    return mix(lx_sin_polynomial_64(angle, 0.0lf), lx_cos_polynomial_64(angle, 0.0lf), far);
}

//! function lx_lgamma_64 needs lx_lgamma_moderate_64, lx_lgamma_large_64, lx_log_64, lx_sine_of_turn_64, lx_round_64, lx_isnan_64
// log|gamma(x)|; infinite at 0 and the negative whole numbers. From -1/2 downwards by reflection.
double lx_lgamma_64(double x) {
    double a = abs(x);
    double result = mix(lx_lgamma_moderate_64(mix(a, x, a < 0.5lf)), lx_lgamma_large_64(a), a >= 8.0lf);
    precise double distance = abs(a - lx_round_64(a));
    double sine = lx_sine_of_turn_64(distance);
    precise double reflected = -lx_log_64(a * (sine * 0.3183098861837907lf)) - result;
    bool pole = distance == 0.0lf || a > 1.0e300lf;
    reflected = mix(reflected, uint64BitsToDouble(0x7ff0000000000000ul), pole);
    result = mix(result, reflected, x <= -0.5lf || a == 0.0lf);
    return mix(result, x, lx_isnan_64(x));
}

//! function lx_digamma_near_root_64
// digamma(1.4616321... + t) for 1 <= 1.46... + t <= 2.
double lx_digamma_near_root_64(double t) {
    double q = fma(0.00011881232908510335lf, t, -0.0002785074876883787lf);
    q = fma(q, t, 0.0002805343686746867lf);
    q = fma(q, t, -0.0002843132292526133lf);
    q = fma(q, t, 0.0004717939701691318lf);
    q = fma(q, t, -0.0007549229618596274lf);
    q = fma(q, t, 0.0010901225234458578lf);
    q = fma(q, t, -0.00157420216813665lf);
    q = fma(q, t, 0.0023028895420557894lf);
    q = fma(q, t, -0.0033700680515484165lf);
    q = fma(q, t, 0.0049270580267742016lf);
    q = fma(q, t, -0.007204519666511045lf);
    q = fma(q, t, 0.010538769938576956lf);
    q = fma(q, t, -0.015424766261277919lf);
    q = fma(q, t, 0.02259764928437279lf);
    q = fma(q, t, -0.03316112647814546lf);
    q = fma(q, t, 0.048804288134436574lf);
    q = fma(q, t, -0.07219956125611147lf);
    q = fma(q, t, 0.1078240506916922lf);
    q = fma(q, t, -0.16394270544241185lf);
    q = fma(q, t, 0.2584997609556486lf);
    q = fma(q, t, -0.4427631689835921lf);
    q = fma(q, t, 0.9676722454476212lf);
    return q * t;
}

//! function lx_digamma_positive_64 needs lx_digamma_near_root_64, lx_log_64
// digamma(a) for a >= 1: from that in [1, 2) by the recurrence, from 6 on by the asymptotic series.
double lx_digamma_positive_64(double a) {
    double n = floor(a);
    precise double steps = mix(0.0lf, 1.0lf / (a - 1.0lf), n > 1.5lf);
    steps += mix(0.0lf, 1.0lf / (a - 2.0lf), n > 2.5lf);
    steps += mix(0.0lf, 1.0lf / (a - 3.0lf), n > 3.5lf);
    steps += mix(0.0lf, 1.0lf / (a - 4.0lf), n > 4.5lf);
    precise double t = ((a - (n - 1.0lf)) - 1.4616321449683622lf) - 9.549995429965697e-17lf;
    precise double moderate = lx_digamma_near_root_64(t) + steps;
    double u = 1.0lf / mix(a, 1.0e100lf, a > 1.0e100lf);
    double z = u * u;
    double q = fma(-1.2391679509311448lf, z, 0.36785762901555535lf);
    q = fma(q, z, -0.08143630485382233lf);
    q = fma(q, z, 0.021063611856820357lf);
    q = fma(q, z, -0.007575487397565147lf);
    q = fma(q, z, 0.004166665241792887lf);
    q = fma(q, z, -0.003968253964454641lf);
    q = fma(q, z, 0.008333333333329406lf);
    q = fma(q, z, -0.08333333333333333lf);
    precise double large = lx_log_64(a) - (0.5lf * u - z * q);
    return mix(moderate, large, a >= 6.0lf);
}

//! function lx_digamma_64 needs lx_digamma_positive_64, lx_digamma_near_root_64, lx_sine_of_turn_64, lx_round_64
// The derivative of log|gamma(x)|; NaN at the negative whole numbers, infinite at zeros, with the other sign. Below 0
// by reflection: digamma(-a) = digamma(a) + 1/a + pi cot(pi a).
double lx_digamma_64(double x) {
    double a = abs(x);
    bool below_one = a < 1.0lf;
    precise double t = (a - 0.46163214496836225lf) - 9.549995429965697e-17lf;
    // That of a, or of a + 1 below one.
    double value = mix(lx_digamma_positive_64(mix(a, 1.0lf, below_one)), lx_digamma_near_root_64(t), below_one);
    double inverse = 1.0lf / a;
    precise double distance = a - lx_round_64(a);
    double size = abs(distance);
    double sine = lx_sine_of_turn_64(size), cosine = lx_sine_of_turn_64(0.5lf - size);
    precise double cotangent = 3.141592653589793lf * (cosine / sine);
    cotangent = mix(cotangent, -cotangent, distance < 0.0lf);
    precise double reflected = cotangent + (value + mix(inverse, 0.0lf, below_one));
    precise double direct = value - mix(0.0lf, inverse, below_one);
    double result = mix(direct, reflected, x < 0.0lf);
    uint64_t bits = doubleBitsToUint64(x);
    bool undefined = bits >= 0xfff0000000000000ul || (x < 0.0lf && distance == 0.0lf);
    result = mix(result, uint64BitsToDouble(0x7ff8000000000000ul), undefined);
    return mix(result, uint64BitsToDouble(~bits & 0x8000000000000000ul | 0x7ff0000000000000ul), a == 0.0lf);
}
//! end

void main() {}
