"""Continuous distributions of one number."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.nn.activations import softplus
from lavax.nn.functional import log1mexp
from lavax.scipy import special
from lavax.scipy.stats.distribution import Distribution, within
from lavax.tracer.values.value import Value

_LOG_2, _LOG_PI, _LOG_2PI = math.log(2), math.log(math.pi), math.log(2 * math.pi)
_NEVER = -math.inf


def _above_zero(y: Value, function: Any, outside: Any) -> Value:
    return within(y, 0.0, math.inf, 1.0, function, outside)


norm = Distribution(
    "norm",
    (),
    {
        "logpdf": lambda y: -0.5 * (y * y + _LOG_2PI),
        "cdf": special.ndtr,
        "logcdf": special.log_ndtr,
        "sf": lambda y: special.ndtr(-y),
        "logsf": lambda y: special.log_ndtr(-y),
        "ppf": special.ndtri,
        "isf": lambda q: -special.ndtri(q),
    },
)

uniform = Distribution(
    "uniform",
    (),
    {
        "logpdf": lambda y: within(y, 0.0, 1.0, 0.5, lnp.zeros_like, _NEVER),
        "cdf": lambda y: lnp.clip(y, 0.0, 1.0),
        "ppf": lambda q: q,
    },
)

expon = Distribution(
    "expon",
    (),
    {
        "logpdf": lambda y: _above_zero(y, lnp.negative, _NEVER),
        "cdf": lambda y: _above_zero(y, lambda y: -lnp.expm1(-y), 0.0),
        "logsf": lambda y: _above_zero(y, lnp.negative, 0.0),
        "ppf": lambda q: -lnp.log1p(-q),
        "isf": lambda q: -lnp.log(q),
    },
)

laplace = Distribution(
    "laplace",
    (),
    {
        "logpdf": lambda y: -lnp.abs(y) - _LOG_2,
        "cdf": lambda y: lnp.where(y < 0, 0.5, 0.0) * lnp.exp(-lnp.abs(y)) + lnp.where(y < 0, 0.0, _upper_half(y)),
        "ppf": lambda q: lnp.where(q < 0.5, lnp.log(2 * q), -lnp.log(2 * (1 - q))),
    },
)


def _upper_half(y: Value) -> Value:
    return 1 - 0.5 * lnp.exp(-lnp.abs(y))


logistic = Distribution(
    "logistic",
    (),
    {
        "logpdf": lambda y: -lnp.abs(y) - 2 * softplus(-lnp.abs(y)),
        "cdf": special.expit,
        "logcdf": lambda y: -softplus(-y),
        "sf": lambda y: special.expit(-y),
        "logsf": lambda y: -softplus(y),
        "ppf": special.logit,
        "isf": lambda q: -special.logit(q),
    },
)

cauchy = Distribution(
    "cauchy",
    (),
    {
        "logpdf": lambda y: -_LOG_PI - lnp.log1p(y * y),
        "cdf": lambda y: lnp.arctan2(lnp.ones_like(y), -y) / math.pi,
        "sf": lambda y: lnp.arctan2(lnp.ones_like(y), y) / math.pi,
        "ppf": lambda q: lnp.tan(math.pi * (q - 0.5)),
        "isf": lambda q: lnp.tan(math.pi * (0.5 - q)),
    },
)

gumbel_r = Distribution(
    "gumbel_r",
    (),
    {
        "logpdf": lambda y: -y - lnp.exp(-y),
        "logcdf": lambda y: -lnp.exp(-y),
        "sf": lambda y: -lnp.expm1(-lnp.exp(-y)),
        "ppf": lambda q: -lnp.log(-lnp.log(q)),
        "isf": lambda q: -lnp.log(-lnp.log1p(-q)),
    },
)

gumbel_l = Distribution(
    "gumbel_l",
    (),
    {
        "logpdf": lambda y: y - lnp.exp(y),
        "logsf": lambda y: -lnp.exp(y),
        "cdf": lambda y: -lnp.expm1(-lnp.exp(y)),
        "ppf": lambda q: lnp.log(-lnp.log1p(-q)),
        "isf": lambda q: lnp.log(-lnp.log(q)),
    },
)

pareto = Distribution(
    "pareto",
    ("b",),
    {
        "logpdf": lambda y, b: within(y, 1.0, math.inf, 2.0, lambda y: lnp.log(b) - (b + 1) * lnp.log(y), _NEVER),
        "logsf": lambda y, b: within(y, 1.0, math.inf, 2.0, lambda y: -b * lnp.log(y), 0.0),
        "cdf": lambda y, b: within(y, 1.0, math.inf, 2.0, lambda y: -lnp.expm1(-b * lnp.log(y)), 0.0),
        "ppf": lambda q, b: lnp.exp(-lnp.log1p(-q) / b),
        "isf": lambda q, b: lnp.exp(-lnp.log(q) / b),
    },
)

gamma = Distribution(
    "gamma",
    ("a",),
    {
        "logpdf": lambda y, a: _above_zero(y, lambda y: special.xlogy(a - 1, y) - y - special.gammaln(a), _NEVER),
        "cdf": lambda y, a: _above_zero(y, lambda y: special.gammainc(a, y), 0.0),
        "sf": lambda y, a: _above_zero(y, lambda y: special.gammaincc(a, y), 1.0),
    },
)


def _chi2_density(y: Value, df: Value) -> Value:
    half = df / 2
    return _above_zero(
        y, lambda y: special.xlogy(half - 1, y) - y / 2 - half * _LOG_2 - special.gammaln(half), _NEVER
    )


chi2 = Distribution(
    "chi2",
    ("df",),
    {
        "logpdf": _chi2_density,
        "cdf": lambda y, df: _above_zero(y, lambda y: special.gammainc(df / 2, y / 2), 0.0),
        "sf": lambda y, df: _above_zero(y, lambda y: special.gammaincc(df / 2, y / 2), 1.0),
    },
)


def _beta_density(y: Value, a: Value, b: Value) -> Value:
    def inner(y: Value) -> Value:
        return special.xlogy(a - 1, y) + special.xlog1py(b - 1, -y) - special.betaln(a, b)

    return within(y, 0.0, 1.0, 0.5, inner, _NEVER)


beta = Distribution(
    "beta",
    ("a", "b"),
    {
        "logpdf": _beta_density,
        "cdf": lambda y, a, b: special.betainc(a, b, lnp.clip(y, 0.0, 1.0)),
        "sf": lambda y, a, b: special.betainc(b, a, 1 - lnp.clip(y, 0.0, 1.0)),
    },
)


def _student_density(y: Value, df: Value) -> Value:
    factor = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * (lnp.log(df) + _LOG_PI)
    return factor - (df + 1) / 2 * lnp.log1p(y * y / df)


t = Distribution("t", ("df",), {"logpdf": _student_density})


def _gennorm_cdf(y: Value, beta: Value) -> Value:
    is_zero = y == 0
    size = lnp.where(is_zero, 0.0, lnp.power(lnp.where(is_zero, 1.0, lnp.abs(y)), beta))
    tail = 0.5 * special.gammaincc(1 / beta, size)
    result: Value = lnp.where(y < 0, tail, 1 - tail)
    return result


gennorm = Distribution(
    "gennorm",
    ("beta",),
    {
        "logpdf": lambda y, beta: (
            lnp.log(beta) - _LOG_2 - special.gammaln(1 / beta) - lnp.power(lnp.abs(y), beta)
        ),
        "cdf": _gennorm_cdf,
        "sf": lambda y, beta: _gennorm_cdf(-y, beta),
    },
)


def _log_mass(low: Value, high: Value) -> Value:
    """log(Φ(high) - Φ(low)), from the side where the digits are."""
    is_above = low > 0
    near, far = lnp.where(is_above, -high, low), lnp.where(is_above, -low, high)
    upper = special.log_ndtr(far)
    gap = upper - special.log_ndtr(near)
    is_nothing = gap <= 0
    result: Value = lnp.where(is_nothing, _NEVER, upper + log1mexp(lnp.where(is_nothing, 1.0, gap)))
    return result


def _truncated(y: Value, a: Value, b: Value, function: Any, below: float, above: float) -> Value:
    middle = lnp.where(lnp.isfinite(a), lnp.where(lnp.isfinite(b), (a + b) / 2, a + 1), lnp.minimum(b - 1, 0.0))
    inner = lnp.clip(lnp.where(lnp.isnan(middle), 0.0, middle), a, b)
    result: Value = lnp.where(y < a, below, lnp.where(y > b, above, within(y, a, b, inner, function, 0.0)))
    return result


truncnorm = Distribution(
    "truncnorm",
    ("a", "b"),
    {
        "logpdf": lambda y, a, b: _truncated(
            y, a, b, lambda y: -0.5 * (y * y + _LOG_2PI) - _log_mass(a, b), _NEVER, _NEVER
        ),
        "logcdf": lambda y, a, b: _truncated(y, a, b, lambda y: _log_mass(a, y) - _log_mass(a, b), _NEVER, 0.0),
        "logsf": lambda y, a, b: _truncated(y, a, b, lambda y: _log_mass(y, b) - _log_mass(a, b), 0.0, _NEVER),
    },
)

vonmises = Distribution(
    "vonmises",
    ("kappa",),
    {"logpdf": lambda y, kappa: kappa * (lnp.cos(y) - 1) - _LOG_2PI - lnp.log(special.i0e(kappa))},
)


def _wrapcauchy_density(y: Value, c: Value) -> Value:
    def inner(y: Value) -> Value:
        return lnp.log(1 - c * c) - _LOG_2PI - lnp.log1p(c * c - 2 * c * lnp.cos(y))

    return within(y, 0.0, 2 * math.pi, 1.0, inner, _NEVER)


wrapcauchy = Distribution("wrapcauchy", ("c",), {"logpdf": _wrapcauchy_density})
