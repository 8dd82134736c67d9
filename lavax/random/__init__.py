"""Random numbers from keys: the same key gives the same numbers, on every driver, inside and outside `compile`.

A key is a uint32 array [..., 2]. Draw from it once; `split` it, or `fold_in` a number, for more. The bits are
Threefry-2x32 with 20 rounds of Salmon et al. 2011, each element's counter being its row-major position, so they are
those that JAX draws from the same key. Functions take one key of shape (2,).
"""
from lavax.random.bits import bits
from lavax.random.continuous import exponential, gumbel, laplace, normal, truncated_normal, uniform
from lavax.random.discrete import bernoulli, categorical, randint
from lavax.random.gamma import beta, dirichlet, gamma, loggamma
from lavax.random.keys import fold_in, key, split
from lavax.random.ordering import choice, permutation
from lavax.random.poisson import poisson
from lavax.random.structured import multivariate_normal, orthogonal

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "laplace",
    "loggamma",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "permutation",
    "poisson",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
]
