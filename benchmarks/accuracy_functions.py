"""The functions in the accuracy table, with their arguments, references and bounds."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special as reference

import lavax.numpy as lnp
from benchmarks import special_references as exact_of
from benchmarks.special_references import Doubles
from lavax.scipy import special

Interval = tuple[float, float]

SMALLEST_NORMAL = 2.0**-126


@dataclass(frozen=True)
class Function:
    """A measured function: ours, the exact one in float64, the usual range of each argument, and the bound.

    `size`, if given, is a magnitude whose unit counts if it is greater than that of the result: for results that are
    small differences of larger terms. `within` bounds the arguments.
    """

    name: str
    ours: Callable[..., Any]
    exact: Callable[..., Any]
    ranges: Sequence[Interval]
    bound: float = 4.0
    size: Callable[..., Any] | None = None
    within: Interval = (-np.inf, np.inf)


def _numpy(name: str, low: float = -10, high: float = 10, bound: float = 4.0, theirs: str = "") -> Function:
    return Function(name, getattr(lnp, name), getattr(np, theirs or name), ((low, high),), bound)


def _numpy_pair(name: str, low: float = -10, high: float = 10, bound: float = 4.0, theirs: str = "") -> Function:
    return Function(name, getattr(lnp, name), getattr(np, theirs or name), ((low, high),) * 2, bound)


def _scipy(name: str, low: float = -10, high: float = 10) -> Function:
    return Function(f"special.{name}", getattr(special, name), getattr(reference, name), ((low, high),))


def _floor_divide(x: Doubles, y: Doubles) -> Doubles:
    """As the array API standard has it: an infinity divided by a number is one, where NumPy gives NaN."""
    with np.errstate(all="ignore"):
        return np.where(np.isinf(x) & np.isfinite(y), x / y, np.where(np.isinf(y), x / y, np.floor_divide(x, y)))


def _sinc(x: Doubles) -> Doubles:
    """np.sinc is less accurate, because it rounds πx."""
    nearest = np.round(x)
    sine = np.sin(np.pi * (x - nearest)) * np.where(np.remainder(nearest, 2) == 0, 1, -1)
    value = np.where(x == 0, 1, np.where(x == nearest, 0, sine / (np.pi * x)))
    return np.where(np.isinf(x), np.nan, value)


def _infinite(function: Callable[[Doubles], Doubles], sign: bool) -> Callable[[Doubles], Doubles]:
    """SciPy's unscaled Bessel functions have no value at infinity, and its odd ones lose the sign of zero."""

    def exact(x: Doubles) -> Doubles:
        value = np.where(np.isinf(x), np.inf, np.abs(function(x)))
        return np.copysign(value, x) if sign else value

    return exact


def _smallest(*arguments: Doubles) -> Doubles:
    """Without the sign of zeros."""
    return np.full_like(arguments[0], SMALLEST_NORMAL)


def _log_of_sum_size(x: Doubles, y: Doubles) -> Doubles:
    return np.where(np.isfinite(x) & np.isfinite(y), np.maximum(np.abs(x), np.abs(y)), 0)


def _terms_of_lgamma(x: Doubles) -> Doubles:
    return np.fmax(1, np.abs(reference.gammaln(np.abs(x))))


def _terms_of_digamma(x: Doubles) -> Doubles:
    return np.abs(reference.digamma(1 + np.abs(x))) + np.abs(np.pi / np.tan(np.pi * (x - np.round(x))))


def _terms_of_betaln(x: Doubles, y: Doubles) -> Doubles:
    small, large = np.minimum(x, y), np.maximum(x, y)
    of_sum, of_large = (np.abs(reference.gammaln(z)) for z in (x + y, large))
    rest = np.where(large < 8, of_sum + of_large, of_sum - of_large)
    return np.fmax(1, np.where(small < 8, np.abs(reference.gammaln(small)) + rest, 0))


_POSITIVE, _NEGATIVE, _FINITE = (0.0, np.inf), (-np.inf, -1e-30), (-1e30, 1e30)


def _of_order(name: str, order: int, low: float, high: float, within: Interval = (-np.inf, np.inf)) -> Function:
    """A function of an integer and a float, with the integer fixed."""
    ours, theirs = getattr(special, name), getattr(reference, name)
    exact = exact_of.of_order(theirs, order)
    return Function(f"special.{name}, n = {order}", lambda x: ours(order, x), exact, ((low, high),), within=within)


def _on_grid(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of the arguments that `exact_of.on_grid` makes of all others."""

    def moved(x: Any) -> Any:
        number = lnp.nan_to_num(x, nan=1.0, posinf=1.0, neginf=1.0)
        return lnp.clip(lnp.round(number * 1024) / 1024, -500, 500)

    return lambda x, y: function(moved(x), moved(y))


def _terms_of_multigammaln(x: Doubles) -> Doubles:
    return np.sum([np.fmax(1, np.abs(reference.gammaln(x - k / 2))) for k in range(3)], axis=0)


def _multigammaln(x: Doubles) -> Doubles:
    """With dimension 3; SciPy's accepts only numbers above 1."""
    value = 1.5 * np.log(np.pi) + np.sum([reference.gammaln(x - k / 2) for k in range(3)], axis=0)
    return np.where(x > 1, value, np.nan)


def _gamma_quotient(name: str, most: Interval, within: Interval) -> Function:
    """With two arguments; the sign of a zero does not count."""
    ours, exact = getattr(special, name), getattr(reference, name)
    return Function(f"special.{name}, x ≥ 0 (b)", ours, exact, (most, most), size=_smallest, within=within)


def _scaled(function: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """`ldexp` of a float and of an integer near another float."""

    def value(x: Any, y: Any) -> Any:
        power = library.nan_to_num(y, nan=0.0, posinf=300.0, neginf=-300.0)
        return function(x, library.clip(library.round(power), -300, 300).astype(library.int32))

    return value


ARITHMETIC = (
    _numpy_pair("add"),
    _numpy_pair("subtract"),
    _numpy_pair("multiply"),
    _numpy_pair("divide"),
    _numpy_pair("remainder", bound=0.5),
    _numpy_pair("fmod", bound=0.0),
    Function("floor_divide", lnp.floor_divide, _floor_divide, ((-10, 10),) * 2, 4.0),
    _numpy_pair("pow", 0, 40, theirs="power"),
    *(
        Function(f"x**{power}", lambda x, power=power: x**power, lambda x, power=power: x**power, ((-10, 10),))
        for power in (-2, 2, 3, 4, 5, 6, 7)
    ),
    _numpy("square"),
    _numpy("reciprocal"),
    _numpy_pair("hypot"),
    _numpy("ceil", bound=0.0),
    _numpy("floor", bound=0.0),
    _numpy("round", bound=0.0),
    _numpy("trunc", bound=0.0),
    _numpy("sign", bound=0.0),
    _numpy("abs", bound=0.0, theirs="absolute"),
    _numpy("negative", bound=0.0),
    _numpy_pair("copysign", bound=0.0),
    _numpy_pair("maximum", bound=0.0),
    _numpy_pair("minimum", bound=0.0),
    _numpy_pair("float_power", 0, 40),
    _numpy_pair("fmax", bound=0.0),
    _numpy_pair("fmin", bound=0.0),
    Function("heaviside", lnp.heaviside, np.heaviside, ((-1, 1), (-10, 10)), 0.0, size=_smallest),
    Function("i0", lnp.i0, _infinite(reference.i0, sign=False), ((-92, 92),)),
    Function(
        "nextafter",
        lnp.nextafter,
        lambda x, y: np.nextafter(x.astype(np.float32), y.astype(np.float32)),
        ((-10, 10), (-10, 10)),
        0.0,
    ),
    Function("spacing", lnp.spacing, lambda x: np.spacing(x.astype(np.float32)), ((-10, 10),), 0.0),
    Function("ldexp", _scaled(lnp.ldexp, lnp), _scaled(np.ldexp, np), ((-10, 10), (-300, 300)), 1.0),
)
EXPONENTIAL = (
    _numpy("exp", -100, 90),
    _numpy("exp2", -150, 130),
    _numpy("expm1", -20, 90),
    _numpy("log", 0, 10),
    _numpy("log2", 0, 10),
    _numpy("log10", 0, 10),
    _numpy("log1p", -1, 10),
    Function("logaddexp", lnp.logaddexp, np.logaddexp, ((-10, 10), (-10, 10)), size=_log_of_sum_size),
    Function("logaddexp2", lnp.logaddexp2, np.logaddexp2, ((-10, 10), (-10, 10)), size=_log_of_sum_size),
    _numpy("sqrt", 0, 10),
    Function("rsqrt", lnp.rsqrt, lambda x: 1 / np.sqrt(x), ((0, 10),)),
    _numpy("cbrt"),
)
TRIGONOMETRIC = (
    _numpy("sin", -100, 100),
    _numpy("cos", -100, 100),
    _numpy("tan", -100, 100),
    _numpy("asin", -1, 1, theirs="arcsin"),
    _numpy("acos", -1, 1, theirs="arccos"),
    _numpy("atan", theirs="arctan"),
    _numpy_pair("atan2", theirs="arctan2"),
    _numpy("sinh", -90, 90),
    _numpy("cosh", -90, 90),
    _numpy("tanh"),
    _numpy("asinh", theirs="arcsinh"),
    _numpy("acosh", 1, 10, theirs="arccosh"),
    _numpy("atanh", -1, 1, theirs="arctanh"),
    Function("sinc", lnp.sinc, _sinc, ((-10, 10),), size=_smallest),
    _numpy("deg2rad"),
    _numpy("rad2deg"),
)
ERROR_AND_LOGARITHMIC = (
    _scipy("erf", -4, 4),
    _scipy("erfc", -4, 10),
    _scipy("erfcx", -10, 20),
    Function("special.erfinv", special.erfinv, lambda x: np.where(x == 0, x, reference.erfinv(x)), ((-1, 1),)),
    _scipy("ndtr", -14, 6),
    _scipy("ndtri", 0, 1),
    _scipy("log_ndtr", -20, 14),
    _scipy("expit", -90, 20),
    _scipy("logit", 0, 1),
    Function("special.entr", special.entr, reference.entr, ((0, 3),), size=_smallest),
    Function("special.xlogy", special.xlogy, reference.xlogy, ((-10, 10), (0, 10)), size=_smallest),
    Function("special.xlog1py", special.xlog1py, reference.xlog1py, ((-10, 10), (-1, 9)), size=_smallest),
)
GAMMA = (
    Function("special.lgamma, x ≥ 0", special.lgamma, reference.gammaln, ((0, 20),), within=_POSITIVE),
    Function(
        "special.lgamma, x < 0 (a)",
        special.lgamma,
        lambda x: np.where(x == -np.inf, np.inf, reference.gammaln(x)),
        ((-20, 0),),
        size=_terms_of_lgamma,
        within=_NEGATIVE,
    ),
    Function("special.digamma, x ≥ 0", special.digamma, reference.digamma, ((0, 20),), within=_POSITIVE),
    Function(
        "special.digamma, x < 0 (a)",
        special.digamma,
        reference.digamma,
        ((-20, 0),),
        size=_terms_of_digamma,
        within=_NEGATIVE,
    ),
    Function(
        "special.betaln (a)",
        special.betaln,
        reference.betaln,
        ((0.1, 20), (0.1, 20)),
        size=_terms_of_betaln,
        within=(1e-3, 1e5),
    ),
    Function(
        "special.loggamma", special.loggamma, lambda x: np.where(x < 0, np.nan, reference.gammaln(x)), ((0, 35),)
    ),
    Function(
        "special.multigammaln, d = 3 (a)",
        lambda x: special.multigammaln(x, 3),
        _multigammaln,
        ((1, 30),),
        size=_terms_of_multigammaln,
    ),
    Function("special.gamma", special.gamma, reference.gamma, ((-36, 36),), size=_smallest),
    Function("special.factorial", special.factorial, exact_of.factorial, ((0, 36),), size=_smallest),
    *(_of_order("polygamma", order, 0, 20, _POSITIVE) for order in (1, 2, 30)),
    Function("special.zeta", special.zeta, exact_of.zeta, ((1, 30), (0, 20)), size=_smallest, within=_POSITIVE),
    _gamma_quotient("beta", (0.0, 20.0), (1e-30, 1e5)),
    _gamma_quotient("comb", (0.0, 40.0), (0.0, 1e6)),
    _gamma_quotient("poch", (0.0, 20.0), (1e-30, 1e6)),
    Function(
        "special.beta, any signs (b)", _on_grid(special.beta), exact_of.beta, ((-10, 10), (-10, 10)), size=_smallest
    ),
    Function(
        "special.poch, any signs (b)", _on_grid(special.poch), exact_of.poch, ((-10, 10), (-10, 10)), size=_smallest
    ),
)
INTEGRALS = (
    Function("special.gammainc", special.gammainc, exact_of.incomplete_gamma(upper=False), ((0, 60), (0, 90))),
    Function("special.gammaincc", special.gammaincc, exact_of.incomplete_gamma(upper=True), ((0, 60), (0, 90))),
    Function(
        "special.betainc (b)",
        special.betainc,
        reference.betainc,
        ((0, 40), (0, 40), (0, 1)),
        size=_smallest,
        within=(1e-4, 3e3),
    ),
    _scipy("exp1", 0, 90),
    Function("special.expi", special.expi, exact_of.expi, ((-90, 95),)),
    *(_of_order("expn", order, 0, 90) for order in (0, 2, 30)),
)
ENTROPIES_AND_BESSEL = (
    Function("special.boxcox", special.boxcox, exact_of.boxcox, ((0, 9), (-9, 9)), size=_smallest, within=_FINITE),
    Function(
        "special.boxcox1p", special.boxcox1p, exact_of.boxcox1p, ((-1, 9), (-9, 9)), size=_smallest, within=_FINITE
    ),
    Function(
        "special.spence",
        special.spence,
        lambda z: np.where(z == np.inf, -np.inf, reference.spence(z)),
        ((0, 9),),
        size=_smallest,
    ),
    Function("special.kl_div", special.kl_div, exact_of.kl_div, ((0, 3), (0, 3)), size=_smallest),
    Function("special.rel_entr (b)", special.rel_entr, reference.rel_entr, ((0, 3), (0, 3)), size=_smallest),
    Function("special.i0", special.i0, _infinite(reference.i0, sign=False), ((-92, 92),)),
    _scipy("i0e", -20, 20),
    Function("special.i1", special.i1, _infinite(reference.i1, sign=True), ((-92, 92),)),
    Function("special.i1e", special.i1e, lambda x: np.copysign(reference.i1e(x), x), ((-20, 20),)),
)
FUNCTIONS: tuple[Function, ...] = (
    *(*ARITHMETIC, *EXPONENTIAL, *TRIGONOMETRIC),
    *(*ERROR_AND_LOGARITHMIC, *GAMMA, *INTEGRALS, *ENTROPIES_AND_BESSEL),
)
