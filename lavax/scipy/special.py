"""Special functions with the names and meanings they have in scipy.special, elementwise except for the sums.

All take arrays, traced values, NumPy arrays, nested lists and Python scalars, and return floats: integers and truth
values count as floats. All have derivatives of every order.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from lavax.nn import functional
from lavax.nn.functional import logsumexp
from lavax.numpy._core.application import apply, as_floating, real_function, real_numbers, together
from lavax.numpy._core.axes import Axis
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from lavax.numpy.elementwise.exponential import log, log1p
from lavax.numpy.elementwise.hyperbolic import atanh
from lavax.numpy.elementwise.powers import sqrt
from lavax.scipy.bessel import bessel_jn
from lavax.scipy.complex_gamma import loggamma_of_complex
from lavax.scipy.dawson import dawsn, fresnel, wofz
from lavax.scipy.dilogarithm import spence
from lavax.scipy.entropies import kl_div, rel_entr
from lavax.scipy.exponential_integrals import exp1, expi, expn
from lavax.scipy.gamma_functions import (
    bernoulli,
    boxcox,
    boxcox1p,
    factorial,
    gamma,
    gammasgn,
    multigammaln,
    polygamma,
    zeta,
)
from lavax.scipy.gamma_ratios import beta, comb, poch
from lavax.scipy.hypergeometric import hyp1f1, hyp2f1
from lavax.scipy.incomplete_beta import betainc
from lavax.scipy.incomplete_gamma import gammainc, gammaincc
from lavax.scipy.owens_t import owens_t
from lavax.scipy.sine_integrals import sici
from lavax.scipy.spherical_harmonics import sph_harm_y
from lavax.scipy.stirling import stirling_rest
from lavax.tracer import with_weak
from lavax.tracer.values.value import Value

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma",
    "entr", "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel", "gamma",
    "gammainc", "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "lgamma",
    "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "owens_t", "poch",
    "polygamma", "psi", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy",
    "zeta",
]  # fmt: skip

erf = real_function("erf", "The error function")
erfc = real_function("erfc", "1 - erf(x), exact for large `x` too")
erfinv = real_function("erfinv", "The inverse of erf: infinite at -1 and 1, NaN beyond")
_erfcx = real_function("erfcx", "exp(x^2) erfc(x)")
expit = real_function("logistic", "1 / (1 + exp(-x)), without overflow", "expit")
lgamma = real_function("lgamma", "The logarithm of the absolute value of the gamma function", "lgamma")
gammaln = lgamma
digamma = real_function("digamma", "The derivative of `lgamma`; NaN at negative whole numbers")
psi = digamma
i0 = real_function("bessel_i0", "The modified Bessel function of the first kind of order 0", "i0")
i0e = real_function("bessel_i0e", "i0(x) exp(-|x|)", "i0e")
i1 = real_function("bessel_i1", "The modified Bessel function of the first kind of order 1", "i1")
i1e = real_function("bessel_i1e", "i1(x) exp(-|x|)", "i1e")
ndtr = real_function("ndtr", "The probability that a normal variate is below `x`, exact where it is small too")


def erfcx(x: ArrayLike) -> Value:
    """exp(x²) erfc(x), elementwise, of complex numbers too; integers and truth values count as floats."""
    value = as_floating(x)
    return with_weak(wofz(multiply(value, 1j)), value.weak) if value.type.dtype.is_complex else _erfcx(value)


def ndtri(p: ArrayLike) -> Value:
    """The inverse of `ndtr`, elementwise: infinite at 0 and 1, NaN beyond; integers count as floats."""
    return apply("ndtri", p, name="ndtri", real=True)



_ROOT_HALF = math.sqrt(0.5)
# From here on Stirling's series is exact in float32.
_STIRLING = 8.0


def softmax(x: ArrayLike, axis: Axis = None) -> Value:
    """exp(x) over its sum along `axis` (None: all axes), without overflow."""
    return functional.softmax(x, axis)


def log_softmax(x: ArrayLike, axis: Axis = None) -> Value:
    """The logarithm of `softmax(x, axis)`, exact for small probabilities too."""
    return functional.log_softmax(x, axis)


def logit(x: ArrayLike) -> Value:
    """log(x / (1 - x)), exact near 1/2 too: infinite at 0 and 1, NaN outside."""
    value = as_floating(x)
    centred = subtract(multiply(value, 2.0), 1.0)
    middle = less(abs(centred), 0.5)
    outer = where(middle, 0.125, value)
    near = multiply(atanh(where(middle, centred, 0.0)), 2.0)
    return with_weak(where(middle, near, subtract(log(outer), log1p(negative(outer)))), value.weak)


def _product_with_logarithm(
    name: str, x: ArrayLike, y: ArrayLike, logarithm: Callable[[ArrayLike], Value], root: float
) -> Value:
    """x * logarithm(y), and 0 if x is 0 and y is not NaN; `root` is where the logarithm is -inf."""
    (factor, argument), weak = together(name, x, y, real=True)
    is_zero = equal(factor, 0)
    regular = logical_and(greater(argument, root), less(argument, math.inf))
    usable = logical_or(logical_or(logical_not(is_zero), regular), isnan(argument))
    product = multiply(factor, logarithm(where(usable, argument, root + 1)))
    # A value of 0 whose derivatives are -inf by `x` and 0 by `y`, as they are in the limit.
    corner = logical_and(is_zero, equal(argument, root))
    result = where(corner, negative(sqrt(where(corner, factor, 1.0))), product)
    return with_weak(result, weak)


def xlogy(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(y), elementwise, and 0 where `x` is 0 and `y` is not NaN. The derivatives at (0, 0) are -inf and 0."""
    return _product_with_logarithm("xlogy", x, y, log, 0.0)


def xlog1py(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(1 + y), elementwise, and 0 where `x` is 0 and `y` is not NaN. The derivatives at (0, -1) are -inf and 0."""
    return _product_with_logarithm("xlog1py", x, y, log1p, -1.0)


def entr(x: ArrayLike) -> Value:
    """-x log(x), elementwise: 0 at 0, with an infinite derivative, and -inf below."""
    value = real_numbers("entr", x)
    is_zero, is_negative = equal(value, 0), less(value, 0)
    inside = where(logical_or(is_zero, is_negative), 1.0, value)
    corner = sqrt(where(is_zero, value, 1.0))
    outside = where(is_zero, corner, -math.inf)
    product = negative(multiply(inside, log(inside)))
    return with_weak(where(logical_or(is_zero, is_negative), outside, product), value.weak)


def betaln(a: ArrayLike, b: ArrayLike) -> Value:
    """The logarithm of the absolute value of the beta function, elementwise: lgamma(a) + lgamma(b) - lgamma(a + b).

    For positive arguments of which one is large, the three terms are combined, because their digits would cancel.
    """
    (first, second), weak = together("betaln", a, b, real=True)
    above = greater(first, second)
    small, large = where(above, second, first), where(above, first, second)
    is_large = logical_and(greater_equal(large, _STIRLING), greater(small, 0))
    are_large = greater_equal(small, _STIRLING)
    plain = subtract(add(lgamma(small), lgamma(large)), lgamma(add(small, large)))
    s, z = where(is_large, small, 1.0), where(is_large, large, _STIRLING)
    one = _beta_of_one_large(s, z)
    both = _beta_of_two_large(where(are_large, s, _STIRLING), where(are_large, z, _STIRLING))
    return with_weak(where(is_large, where(are_large, both, one), plain), weak)


def loggamma(x: ArrayLike) -> Value:
    """`lgamma` of positive numbers, and NaN for negative ones, for which the function is complex.

    Of complex numbers it is the logarithm that has no jump but across the negative numbers.
    """
    value = as_floating(x)
    if value.type.dtype.is_complex:
        return with_weak(loggamma_of_complex(value), value.weak)
    below = less(value, 0)
    return with_weak(where(below, math.nan, lgamma(where(below, 1.0, value))), value.weak)


def _beta_of_one_large(s: Value, z: Value) -> Value:
    total = add(s, z)
    powers = add(multiply(subtract(z, 0.5), log1p(divide(s, z))), multiply(s, subtract(log(total), 1.0)))
    return subtract(add(lgamma(s), subtract(stirling_rest(z), stirling_rest(total))), powers)


def _beta_of_two_large(s: Value, z: Value) -> Value:
    total = add(s, z)
    powers = subtract(multiply(subtract(s, 0.5), log(divide(s, total))), multiply(z, log1p(divide(s, z))))
    rests = subtract(add(stirling_rest(s), stirling_rest(z)), stirling_rest(total))
    return add(add(powers, multiply(log(z), -0.5)), add(rests, 0.5 * math.log(2 * math.pi)))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Value:
    """The logarithm of `ndtr(x)`, accurate even if that is 0 or 1 in float32.

    There is no series: `series_order` is taken as JAX takes it, and changes nothing.
    """
    value = as_floating(x)
    is_low, is_middle = less(value, -0.5), less_equal(abs(value), 0.5)
    lower = where(is_low, value, -1.0)
    low = subtract(log(multiply(erfcx(multiply(lower, -_ROOT_HALF)), 0.5)), multiply(multiply(lower, 0.5), lower))
    middle = subtract(log1p(erf(multiply(where(is_middle, value, 0.0), _ROOT_HALF))), math.log(2))
    high = log1p(negative(ndtr(negative(where(less_equal(value, 0.5), 1.0, value)))))
    return with_weak(where(is_low, low, where(is_middle, middle, high)), value.weak)
