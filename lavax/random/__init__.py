"""Random numbers from keys: the same key gives the same numbers, on every driver, inside and outside `compile`.

A key is an element of an array from `key`, whose dtype is key<fry>, or two words, uint32 [2], from `PRNGKey`, in all
functions. Draw from it once; `split` it, or `fold_in` a number, for more. The bits are Threefry-2x32 with 20 rounds of
Salmon et al. 2011; the counter of each element is its row-major position. So they are the bits that JAX draws from the
same key, and the numbers made from them equal JAX's except for rounding. Functions take one key. They take
`out_sharding`, too, which changes nothing: all numbers are on one device.
"""
from lavax.random.binomial import binomial, multinomial
from lavax.random.bits import bits
from lavax.random.continuous import exponential, gumbel, laplace, normal, truncated_normal, uniform
from lavax.random.discrete import bernoulli, categorical, geometric, rademacher, randint
from lavax.random.families import (
    cauchy,
    double_sided_maxwell,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from lavax.random.gamma import beta, dirichlet, gamma, loggamma
from lavax.random.gamma_families import ball, chisquare, f, generalized_normal, t
from lavax.random.keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data
from lavax.random.ordering import choice, permutation
from lavax.random.poisson import poisson
from lavax.random.structured import multivariate_normal, orthogonal

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "clone",
    "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric",
    "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
    "wrap_key_data",
]  # fmt: skip
