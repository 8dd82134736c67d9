"""Distributions of whole numbers."""
from __future__ import annotations

import math

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy import special
from lavax.scipy.stats.distribution import Distribution, whole_within
from lavax.tracer.values.value import Value


def _log_choices(n: Value, k: Value) -> Value:
    return -special.betaln(n - k + 1, k + 1) - lnp.log1p(n)


bernoulli = Distribution(
    "bernoulli",
    ("p",),
    {
        "logpmf": lambda k, p: whole_within(k, 0.0, 1.0, lambda k: special.xlogy(k, p) + special.xlog1py(1 - k, -p)),
        "cdf": lambda k, p: lnp.where(k < 0, 0.0, lnp.where(k < 1, 1 - p, 1.0)),
        "ppf": lambda q, p: lnp.where(q <= 1 - p, 0.0, 1.0),
    },
    "k",
)

binom = Distribution(
    "binom",
    ("n", "p"),
    {
        "logpmf": lambda k, n, p: whole_within(
            k, 0.0, n, lambda k: _log_choices(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p)
        )
    },
    "k",
)

betabinom = Distribution(
    "betabinom",
    ("n", "a", "b"),
    {
        "logpmf": lambda k, n, a, b: whole_within(
            k, 0.0, n, lambda k: _log_choices(n, k) + special.betaln(k + a, n - k + b) - special.betaln(a, b)
        )
    },
    "k",
)

geom = Distribution(
    "geom",
    ("p",),
    {"logpmf": lambda k, p: whole_within(k, 1.0, math.inf, lambda k: special.xlog1py(k - 1, -p) + lnp.log(p))},
    "k",
)

nbinom = Distribution(
    "nbinom",
    ("n", "p"),
    {
        "logpmf": lambda k, n, p: whole_within(
            k,
            0.0,
            math.inf,
            lambda k: (
                special.gammaln(k + n)
                - special.gammaln(n)
                - special.gammaln(k + 1)
                + special.xlogy(n, p)
                + special.xlog1py(k, -p)
            ),
        )
    },
    "k",
)

# Up to this mean the entropy is summed over the numbers below _TERMS; above, it is its asymptotic series.
_LARGE, _TERMS = 20.0, 80


class _Poisson(Distribution):
    """The Poisson distribution, which has an entropy, too."""

    @staticmethod
    def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Value:
        """-Σ p·log(p) of the Poisson distribution of mean `mu`, elementwise; it does not depend on `loc`."""
        mean = as_floating(mu)
        is_large, is_zero = mean > _LARGE, mean <= 0
        small = lnp.where(lnp.logical_or(is_large, is_zero), 1.0, mean)[..., None]
        logs = special.xlogy(lnp.asarray(np.arange(_TERMS, dtype="f")), small)
        logs = logs - small - lnp.asarray([math.lgamma(k + 1.0) for k in range(_TERMS)])
        summed = -lnp.sum(lnp.exp(logs) * logs, axis=-1)
        large = lnp.where(is_large, mean, _LARGE)
        inverse = 1 / large
        series = inverse * (-1 / 12 - inverse * (1 / 24 + inverse * 19 / 360))
        found = lnp.where(is_large, 0.5 * lnp.log(2 * math.pi * math.e * large) + series, summed)
        result: Value = lnp.where(is_zero, lnp.where(mean < 0, math.nan, 0.0), found)
        return result


poisson = _Poisson(
    "poisson",
    ("mu",),
    {
        "logpmf": lambda k, mu: whole_within(
            k, 0.0, math.inf, lambda k: special.xlogy(k, mu) - special.gammaln(k + 1) - mu
        ),
        "cdf": lambda k, mu: lnp.where(k < 0, 0.0, special.gammaincc(lnp.floor(lnp.maximum(k, 0.0)) + 1, mu)),
    },
    "k",
)
