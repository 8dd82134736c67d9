#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// Modified Bessel functions of the first kind, of orders 0 and 1, in float64; "scaled" is times e^-|x|.
// Up to 8 polynomials give the scaled functions times 1 + |x|, beyond in 1/|x| times sqrt(|x|) (Abramowitz and Stegun
// 9.7.1). They are our own fits: interpolation at Chebyshev's points with 260 bits, coefficients then rounded.

// Stand-ins for functions of the other files, so that this one compiles on its own; a shader gets the real ones.
bool lx_isnan_64(double x) { return isnan(x); }
double lx_exp_scaled_64(double x, double rest, int k) { return ldexp(double(exp(float(x + rest))), k); }
double lx_copy_sign_64(double x, double y) { return y < 0.0lf ? -abs(x) : abs(x); }

//! function lx_bessel_i0_scaled_64
// I0(a) e^-a for a >= 0.
double lx_bessel_i0_scaled_64(double a) {
    precise double t = a - 4.0lf;
    double small = fma(-2.811065377112528e-27lf, t, 4.25248787233786e-26lf);
    small = fma(small, t, -2.746357833940403e-25lf);
    small = fma(small, t, 3.5673263897275995e-24lf);
    small = fma(small, t, -6.352039006280422e-23lf);
    small = fma(small, t, 8.066661870830926e-22lf);
    small = fma(small, t, -9.207225894119532e-21lf);
    small = fma(small, t, 1.0604164031357276e-19lf);
    small = fma(small, t, -1.180010292777725e-18lf);
    small = fma(small, t, 1.2407363957614799e-17lf);
    small = fma(small, t, -1.2379696483844675e-16lf);
    small = fma(small, t, 1.1716602476545782e-15lf);
    small = fma(small, t, -1.047038922147315e-14lf);
    small = fma(small, t, 8.793780449938424e-14lf);
    small = fma(small, t, -6.905757060520119e-13lf);
    small = fma(small, t, 5.03758685171864e-12lf);
    small = fma(small, t, -3.384037788681849e-11lf);
    small = fma(small, t, 2.0680298736309486e-10lf);
    small = fma(small, t, -1.1283297317863218e-09lf);
    small = fma(small, t, 5.316346731002622e-09lf);
    small = fma(small, t, -2.0078885372114508e-08lf);
    small = fma(small, t, 4.645683611363805e-08lf);
    small = fma(small, t, 8.728603497532387e-08lf);
    small = fma(small, t, -1.8679855017697621e-06lf);
    small = fma(small, t, 1.3799464324690052e-05lf);
    small = fma(small, t, -7.367503894388017e-05lf);
    small = fma(small, t, 0.0003146223259159504lf);
    small = fma(small, t, -0.0010492920725624774lf);
    small = fma(small, t, 0.0012850521971834038lf);
    small = fma(small, t, 0.06574651261622985lf);
    small = fma(small, t, 1.0350096061199334lf);
    precise double u = 1.0lf / a - 0.0625lf;
    double large = fma(-5.600590092177202e+18lf, u, -9.515680496232826e+16lf);
    large = fma(large, u, 1.6037318144527456e+17lf);
    large = fma(large, u, 2838023316611292.0lf);
    large = fma(large, u, -2150603480419067.2lf);
    large = fma(large, u, -42026809998250.38lf);
    large = fma(large, u, 18328218596818.52lf);
    large = fma(large, u, 442096389238.02985lf);
    large = fma(large, u, -114153342384.6759lf);
    large = fma(large, u, -4018840806.936886lf);
    large = fma(large, u, 546212511.9743052lf);
    large = fma(large, u, 33959849.56012221lf);
    large = fma(large, u, -1539273.339762341lf);
    large = fma(large, u, -235809.9189073008lf);
    large = fma(large, u, -7399.4099127844565lf);
    large = fma(large, u, 519.0736993596148lf);
    large = fma(large, u, 92.53583339685075lf);
    large = fma(large, u, 10.556499345371257lf);
    large = fma(large, u, 1.4885171356560098lf);
    large = fma(large, u, 0.3118043949935277lf);
    large = fma(large, u, 0.0972454328638334lf);
    large = fma(large, u, 0.04564186641021642lf);
    large = fma(large, u, 0.03487131504443583lf);
    large = fma(large, u, 0.053768831738685664lf);
    large = fma(large, u, 0.4021765094450081lf);
    precise double below = small / (1.0lf + a);
    precise double beyond = large / sqrt(a);
    return mix(below, beyond, a > 8.0lf);
}

//! function lx_bessel_i1_scaled_64
// I1(a) e^-a for a >= 0.
double lx_bessel_i1_scaled_64(double a) {
    precise double t = (a - 5.0lf) / (a + 5.0lf);
    double small = fma(2.4892282608723612e-05lf, t, 0.0002652303794754785lf);
    small = fma(small, t, 0.0012586526749378325lf);
    small = fma(small, t, 0.0033923564467886057lf);
    small = fma(small, t, 0.00520915103028433lf);
    small = fma(small, t, 0.0026508631848735816lf);
    small = fma(small, t, -0.007070351109807061lf);
    small = fma(small, t, -0.018865805203227733lf);
    small = fma(small, t, -0.02020721236274009lf);
    small = fma(small, t, -0.0040606459894268745lf);
    small = fma(small, t, 0.017588670818386744lf);
    small = fma(small, t, 0.020276946301010085lf);
    small = fma(small, t, -0.004240773947641247lf);
    small = fma(small, t, -0.028269412592398808lf);
    small = fma(small, t, -0.01461737197991497lf);
    small = fma(small, t, 0.02556155158958232lf);
    small = fma(small, t, 0.027640548823321082lf);
    small = fma(small, t, -0.027499789015233308lf);
    small = fma(small, t, -0.041299006450450204lf);
    small = fma(small, t, 0.04081263694783587lf);
    small = fma(small, t, 0.036268129880267355lf);
    small = fma(small, t, -0.0979140127851034lf);
    small = fma(small, t, 0.06572576340054241lf);
    small = fma(small, t, 0.004698163478433132lf);
    small = fma(small, t, -0.0926987886150508lf);
    small = fma(small, t, 0.13146770190139767lf);
    small = fma(small, t, -0.22429979946728665lf);
    small = fma(small, t, 0.19676672033345083lf);
    precise double u = 1.0lf / a - 0.0625lf;
    double large = fma(-2.4943666421232447e+19lf, u, 4.861386793431864e+18lf);
    large = fma(large, u, 7.019866960459464e+17lf);
    large = fma(large, u, -1.4410116600158352e+17lf);
    large = fma(large, u, -9282135415863880.0lf);
    large = fma(large, u, 2004114548018429.8lf);
    large = fma(large, u, 80964245268677.19lf);
    large = fma(large, u, -17725135247813.46lf);
    large = fma(large, u, -587957221044.5308lf);
    large = fma(large, u, 114424860425.80542lf);
    large = fma(large, u, 4385500067.547293lf);
    large = fma(large, u, -566589200.4147426lf);
    large = fma(large, u, -35204495.373382896lf);
    large = fma(large, u, 1678617.0621495754lf);
    large = fma(large, u, 247847.87816024732lf);
    large = fma(large, u, 7407.952372060074lf);
    large = fma(large, u, -579.9099825273273lf);
    large = fma(large, u, -100.39257507346584lf);
    large = fma(large, u, -11.577027760623798lf);
    large = fma(large, u, -1.677936786281904lf);
    large = fma(large, u, -0.3653088565131185lf);
    large = fma(large, u, -0.12025267065973347lf);
    large = fma(large, u, -0.06159788932038071lf);
    large = fma(large, u, -0.05612435554145864lf);
    large = fma(large, u, -0.1559932350917723lf);
    large = fma(large, u, 0.38939845902587233lf);
    precise double below = small / (1.0lf + a) * a;
    precise double beyond = large / sqrt(a);
    return mix(below, beyond, a > 8.0lf);
}

//! function lx_bessel_i0e_64 needs lx_bessel_i0_scaled_64, lx_isnan_64
// I0(x) e^-|x|.
double lx_bessel_i0e_64(double x) { return mix(lx_bessel_i0_scaled_64(abs(x)), x, lx_isnan_64(x)); }

//! function lx_bessel_i0_64 needs lx_bessel_i0_scaled_64, lx_exp_scaled_64
// I0(x). The exponential of large arguments is taken times 2^-40, as it overflows before I0 does.
double lx_bessel_i0_64(double x) {
    double a = abs(x);
    bool large = a > 8.0lf;
    double power = lx_exp_scaled_64(a, 0.0lf, large ? -40 : 0);
    precise double result = (lx_bessel_i0_scaled_64(a) * power) * mix(1.0lf, 1099511627776.0lf, large);
    return mix(result, a, doubleBitsToUint64(a) >= 0x7ff0000000000000ul);
}

//! function lx_bessel_i1e_64 needs lx_bessel_i1_scaled_64, lx_copy_sign_64, lx_isnan_64
// I1(x) e^-|x|.
double lx_bessel_i1e_64(double x) {
    return mix(lx_copy_sign_64(lx_bessel_i1_scaled_64(abs(x)), x), x, lx_isnan_64(x));
}

//! function lx_bessel_i1_64 needs lx_bessel_i1_scaled_64, lx_exp_scaled_64, lx_copy_sign_64
// I1(x).
double lx_bessel_i1_64(double x) {
    double a = abs(x);
    bool large = a > 8.0lf;
    double power = lx_exp_scaled_64(a, 0.0lf, large ? -40 : 0);
    precise double result = (lx_bessel_i1_scaled_64(a) * power) * mix(1.0lf, 1099511627776.0lf, large);
    return lx_copy_sign_64(mix(result, a, doubleBitsToUint64(a) >= 0x7ff0000000000000ul), x);
}
//! end

void main() {}
