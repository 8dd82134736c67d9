"""Distributions, and statistics of samples: `stats.norm.logpdf(x, loc, scale)`.

A distribution has all functions that follow from those that it defines, which are more than JAX has.
"""
import sys as _sys

from lavax.scipy.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    gamma,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    norm,
    pareto,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from lavax.scipy.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from lavax.scipy.stats.gaussian_kde import gaussian_kde
from lavax.scipy.stats.samples import mode, rankdata, sem
from lavax.scipy.stats.vectors import dirichlet, multinomial, multivariate_normal

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]

# `import lavax.scipy.stats.norm as norm` finds the distributions, as modules of these names are found in JAX.
_NO_MODULES = ("gaussian_kde", "mode", "rankdata", "sem")
_sys.modules.update({f"{__name__}.{name}": globals()[name] for name in __all__ if name not in _NO_MODULES})
