#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// The error functions, the normal distribution and their inverses in float64. Polynomials are our own fits:
// interpolation at Chebyshev's points with 260 bits, coefficients then rounded. Results do not depend on fused fma.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
bool lx_isnan_64(double x) { return isnan(x); }
double lx_exp_scaled_64(double x, double rest, int k) { return ldexp(double(exp(float(x + rest))), k); }
double lx_log_64(double x) { return double(log(float(x))); }
double lx_copy_sign_64(double x, double y) { return y < 0.0lf ? -abs(x) : abs(x); }

//! function lx_erf_small_64
// erf(x) for |x| <= 1.
double lx_erf_small_64(double x) {
    double z = x * x;
    double q = fma(5.957176147748911e-11lf, z, -1.1372848856791674e-09lf);
    q = fma(q, z, 1.4659775274047436e-08lf);
    q = fma(q, z, -1.6350312701054695e-07lf);
    q = fma(q, z, 1.6461000484121368e-06lf);
    q = fma(q, z, -1.4925595266831182e-05lf);
    q = fma(q, z, 0.0001205533111164271lf);
    q = fma(q, z, -0.000854832698083379lf);
    q = fma(q, z, 0.0052239776248180145lf);
    q = fma(q, z, -0.026866170645076792lf);
    q = fma(q, z, 0.11283791670954879lf);
    q = fma(q, z, -0.3761263890318375lf);
    q = fma(q, z, 0.1283791670955126lf);
    precise double result = fma(x, q, x);
    return result;
}

//! function lx_erfcx_positive_64
// e^(a^2) erfc(a) for a >= 0: 1 / (1 + 2 a) times a polynomial in (a - 3) / (a + 3).
double lx_erfcx_positive_64(double a) {
    precise double v = mix(a, 1.0e100lf, a > 1.0e100lf);
    precise double u = (v - 3.0lf) / (v + 3.0lf);
    double q = fma(-2.5208846559132343e-11lf, u, 8.373239801913565e-10lf);
    q = fma(q, u, 1.1435382719942424e-09lf);
    q = fma(q, u, -8.205287217548862e-09lf);
    q = fma(q, u, -1.3744637271614611e-08lf);
    q = fma(q, u, 4.1031674722876435e-08lf);
    q = fma(q, u, 1.0252159854733823e-07lf);
    q = fma(q, u, -1.4042772727671948e-07lf);
    q = fma(q, u, -6.172971639709339e-07lf);
    q = fma(q, u, 3.5571413343395913e-07lf);
    q = fma(q, u, 3.4728430145951554e-06lf);
    q = fma(q, u, -7.307985940695724e-07lf);
    q = fma(q, u, -2.010075903780886e-05lf);
    q = fma(q, u, 4.949184182276066e-06lf);
    q = fma(q, u, 0.00012509940933306624lf);
    q = fma(q, u, -0.00010515971612176149lf);
    q = fma(q, u, -0.0007798322831260387lf);
    q = fma(q, u, 0.0018886903443894542lf);
    q = fma(q, u, 0.0025293918173706497lf);
    q = fma(q, u, -0.023770514917107986lf);
    q = fma(q, u, 0.06830802734389313lf);
    q = fma(q, u, -0.11927366341538978lf);
    q = fma(q, u, 0.12964515870276316lf);
    q = fma(q, u, -0.04756229435344912lf);
    q = fma(q, u, -0.1356211061245812lf);
    q = fma(q, u, 1.2530080582697296lf);
    precise double result = (0.5lf * q) / (a + 0.5lf);
    return result;
}

//! function lx_exp_of_square_64 needs lx_exp_scaled_64
// 2^k e^(factor a^2) for a factor that is a power of two: a^2 as the exact square of a's 26-bit head and a small rest.
double lx_exp_of_square_64(double a, double factor, int k) {
    precise double head = uint64BitsToDouble(doubleBitsToUint64(a) & 0xfffffffff8000000ul);
    precise double rest = (a - head) * (a + head);
    return lx_exp_scaled_64(factor * (head * head), factor * rest, k);
}

//! function lx_erfc_large_64 needs lx_erfcx_positive_64, lx_exp_of_square_64
// erfc(a) for a >= 1/2. The exponential is taken times 2^60, as it underflows where erfc does.
double lx_erfc_large_64(double a) {
    double v = mix(a, 28.0lf, a > 28.0lf);
    precise double result = (lx_exp_of_square_64(v, -1.0lf, 60) * lx_erfcx_positive_64(v)) * 8.673617379884035e-19lf;
    return result;
}

//! function lx_erf_64 needs lx_erf_small_64, lx_erfc_large_64, lx_copy_sign_64, lx_isnan_64
// The error function.
double lx_erf_64(double x) {
    double a = abs(x);
    precise double result = mix(1.0lf - lx_erfc_large_64(a), lx_erf_small_64(a), a < 1.0lf);
    return mix(lx_copy_sign_64(result, x), x, lx_isnan_64(x));
}

//! function lx_erfc_64 needs lx_erf_small_64, lx_erfc_large_64, lx_isnan_64
// 1 - erf(x).
double lx_erfc_64(double x) {
    double a = abs(x);
    precise double large = lx_erfc_large_64(a);
    large = mix(large, 2.0lf - large, x < 0.0lf);
    precise double result = mix(large, 1.0lf - lx_erf_small_64(x), a < 0.7lf);
    return mix(result, x, lx_isnan_64(x));
}

//! function lx_erfcx_64 needs lx_erf_small_64, lx_erfcx_positive_64, lx_exp_of_square_64, lx_isnan_64
// e^(x^2) erfc(x); below 0 it is 2 e^(x^2) less that of -x. Near 0 by way of erf.
double lx_erfcx_64(double x) {
    double a = abs(x);
    double twice = lx_exp_of_square_64(mix(a, 28.0lf, a > 28.0lf), 1.0lf, 1);
    double positive = lx_erfcx_positive_64(a);
    precise double negative = twice - positive;
    precise double inner = (0.5lf * twice) * (1.0lf - lx_erf_small_64(x));
    double outer = mix(positive, negative, x < 0.0lf);
    return mix(mix(outer, inner, a < 0.5lf), x, lx_isnan_64(x));
}

//! function lx_ndtr_64 needs lx_erf_small_64, lx_erfcx_positive_64, lx_exp_of_square_64, lx_isnan_64
// The probability that a normal variate is below x: beyond |x| it lies with e^(-x^2 / 2) erfcx(|x| / sqrt(2)) / 2.
// Near 0 by way of erf.
double lx_ndtr_64(double x) {
    double a = mix(abs(x), 40.0lf, abs(x) > 40.0lf);
    double factor = lx_erfcx_positive_64(a * 0.7071067811865476lf);
    precise double tail = (lx_exp_of_square_64(a, -0.5lf, 59) * factor) * 8.673617379884035e-19lf;
    precise double outer = mix(1.0lf - tail, tail, x < 0.0lf);
    precise double inner = 0.5lf + 0.5lf * lx_erf_small_64(x * 0.7071067811865476lf);
    return mix(mix(outer, inner, a < 1.0lf), x, lx_isnan_64(x));
}

//! function lx_erfinv_factor_64
// erfinv(x) / x by w = -log(1 - x^2), after Giles, "Approximating the erfinv function" (2010): a polynomial in w below
// 6.25, and above in (v - c) / (v + c), v = sqrt(w), times v.
double lx_erfinv_factor_64(double w) {
    precise double t = w - 3.125lf;
    double center = fma(-1.9123778045391186e-23lf, t, -3.3795536525485224e-22lf);
    center = fma(center, t, 4.357475280244854e-21lf);
    center = fma(center, t, 1.8739434875095462e-20lf);
    center = fma(center, t, -3.7848217521105335e-19lf);
    center = fma(center, t, 6.396664855709971e-19lf);
    center = fma(center, t, 1.5992591736199305e-17lf);
    center = fma(center, t, -1.226305743260548e-16lf);
    center = fma(center, t, -4.417003393665373e-17lf);
    center = fma(center, t, 6.525767922399858e-15lf);
    center = fma(center, t, -3.998852309540432e-14lf);
    center = fma(center, t, -8.074665167507013e-14lf);
    center = fma(center, t, 2.6303859148085384e-12lf);
    center = fma(center, t, -1.2978692479994892e-11lf);
    center = fma(center, t, -5.4142609576164565e-11lf);
    center = fma(center, t, 1.051223070748762e-09lf);
    center = fma(center, t, -4.112661266924503e-09lf);
    center = fma(center, t, -2.907039074871087e-08lf);
    center = fma(center, t, 4.234788178266526e-07lf);
    center = fma(center, t, -1.3654691764135042e-06lf);
    center = fma(center, t, -1.3882523394637344e-05lf);
    center = fma(center, t, 0.0001867342080200925lf);
    center = fma(center, t, -0.0007407025341544301lf);
    center = fma(center, t, -0.006033670871426909lf);
    center = fma(center, t, 0.2401581824255883lf);
    center = fma(center, t, 1.6536545626831027lf);
    double v = sqrt(w);
    precise double u = (v - 3.5lf) / (v + 3.5lf);
    double middle = fma(-5222024.145065185lf, u, 42566.32366646423lf);
    middle = fma(middle, u, 1762098.5508727622lf);
    middle = fma(middle, u, 184228.68888288958lf);
    middle = fma(middle, u, -421395.03441147535lf);
    middle = fma(middle, u, -66204.69258259372lf);
    middle = fma(middle, u, 94385.16945491073lf);
    middle = fma(middle, u, 8001.2451174453445lf);
    middle = fma(middle, u, -18554.28368180822lf);
    middle = fma(middle, u, 1116.4983197867098lf);
    middle = fma(middle, u, 2779.9501548276867lf);
    middle = fma(middle, u, -696.3469059521684lf);
    middle = fma(middle, u, -233.30954780681319lf);
    middle = fma(middle, u, 148.4071394523546lf);
    middle = fma(middle, u, -12.724248446203989lf);
    middle = fma(middle, u, -13.893118806720977lf);
    middle = fma(middle, u, 7.219133014775506lf);
    middle = fma(middle, u, -2.060082196233908lf);
    middle = fma(middle, u, 0.4850502605793094lf);
    middle = fma(middle, u, -0.09344537144059761lf);
    middle = fma(middle, u, -0.0628696600872302lf);
    middle = fma(middle, u, 0.10874578715465097lf);
    middle = fma(middle, u, 0.9529959191667297lf);
    u = (v - 10.0lf) / (v + 10.0lf);
    double tail = fma(-1573.7283706328374lf, u, 3889.6261778391035lf);
    tail = fma(tail, u, -2995.144418372694lf);
    tail = fma(tail, u, -216.86468447030688lf);
    tail = fma(tail, u, 1423.7097018901454lf);
    tail = fma(tail, u, -467.7035636759816lf);
    tail = fma(tail, u, -237.6499731255352lf);
    tail = fma(tail, u, 156.0871641216973lf);
    tail = fma(tail, u, 11.667076552509851lf);
    tail = fma(tail, u, -24.562365561116618lf);
    tail = fma(tail, u, 1.6799629216528769lf);
    tail = fma(tail, u, 2.486753891104801lf);
    tail = fma(tail, u, -0.5057019131746077lf);
    tail = fma(tail, u, -0.02212893418687532lf);
    tail = fma(tail, u, -0.0827557595102853lf);
    tail = fma(tail, u, 0.11267991032578983lf);
    tail = fma(tail, u, -0.0970025138184538lf);
    tail = fma(tail, u, 0.08138555138908155lf);
    tail = fma(tail, u, -0.06601656066570177lf);
    tail = fma(tail, u, 0.0492786970669514lf);
    tail = fma(tail, u, -0.03168343042228085lf);
    tail = fma(tail, u, 0.013895711266821398lf);
    tail = fma(tail, u, 0.0033321975761728233lf);
    tail = fma(tail, u, -0.019243947078955118lf);
    tail = fma(tail, u, 0.03284889253592149lf);
    tail = fma(tail, u, -0.043207328348574194lf);
    tail = fma(tail, u, 0.048697956734817284lf);
    tail = fma(tail, u, -0.04780974507750056lf);
    tail = fma(tail, u, 0.03381740473422187lf);
    tail = fma(tail, u, 0.9890609132540967lf);
    return mix(v * mix(middle, tail, v > 5.0lf), center, w < 6.25lf);
}

//! function lx_erfinv_64 needs lx_erfinv_factor_64, lx_log_64, lx_copy_sign_64
// The inverse of erf.
double lx_erfinv_64(double x) {
    precise double w = -lx_log_64((1.0lf - x) * (1.0lf + x));
    precise double result = lx_erfinv_factor_64(w) * x;
    double a = abs(x);
    double end = uint64BitsToDouble(a == 1.0lf ? 0x7ff0000000000000ul : 0x7ff8000000000000ul);
    return mix(lx_copy_sign_64(end, x), result, a < 1.0lf);
}

//! function lx_ndtri_64 needs lx_erfinv_factor_64, lx_log_64
// The x below which a normal variate lies with probability p: sqrt(2) erfinv(2 p - 1), with 1 - (2 p - 1)^2 taken as
// 4 q (1 - q), q the smaller of p and 1 - p.
double lx_ndtri_64(double p) {
    precise double q = mix(p, 1.0lf - p, p > 0.5lf);
    precise double w = -lx_log_64(4.0lf * (q * (1.0lf - q)));
    precise double y = p - 0.5lf;
    precise double result = (2.8284271247461903lf * y) * lx_erfinv_factor_64(w);
    uint64_t end = p == 0.0lf ? 0xfff0000000000000ul : p == 1.0lf ? 0x7ff0000000000000ul : 0x7ff8000000000000ul;
    return mix(uint64BitsToDouble(end), result, p > 0.0lf && p < 1.0lf);
}
//! end

void main() {}
