"""Distributions of vectors."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax import linalg
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.scipy import special
from lavax.tracer.values.value import Value


class multivariate_normal:  # noqa: N801  # the name in SciPy
    """Normal distributions of vectors: of the mean [..., n] and the covariance matrix [..., n, n]."""

    @staticmethod
    def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Value:
        """The logarithm of the density at `x` [..., n]; batches broadcast.

        A scalar `cov` stands for a multiple of the unit matrix, and a scalar `mean` is the same in all components. A
        matrix that is not positive definite gives NaN. Raises ShapeError if the shapes do not fit, ValueError for
        `allow_singular`.
        """
        if allow_singular is not None:
            raise ValueError("multivariate_normal.logpdf: allow_singular is not supported; leave it None")
        value, centre, matrix = (as_floating(each) for each in (x, mean, cov))
        if not centre.ndim:
            if matrix.ndim:
                centre = lnp.broadcast_to(centre, matrix.shape[-1:])
            else:
                y = value - centre
                return -0.5 * (y * y / matrix + math.log(2 * math.pi) + lnp.log(matrix))
        n = centre.shape[-1]
        if not matrix.ndim:
            y = value - centre
            squares = lnp.sum(y * y, axis=-1) / matrix
            return -0.5 * (squares + n * (math.log(2 * math.pi) + lnp.log(matrix)))
        if matrix.ndim < 2 or matrix.shape[-2:] != (n, n) or value.ndim < 1 or value.shape[-1] != n:
            raise shape_error(
                f"multivariate_normal.logpdf takes x and mean [..., n] and cov [..., n, n], got {value.type}, "
                f"{centre.type} and {matrix.type}"
            )
        factor = linalg.cholesky(matrix)
        y = (value - centre)[..., None]
        solved = linalg.solve_triangular(factor, y, lower=True)[..., 0]
        scales = lnp.sum(lnp.log(lnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * (lnp.sum(solved * solved, axis=-1) + n * math.log(2 * math.pi)) - scales

    @staticmethod
    def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Value:
        """The density, as `logpdf`."""
        return lnp.exp(multivariate_normal.logpdf(x, mean, cov))


class dirichlet:  # noqa: N801  # the name in SciPy
    """Dirichlet distributions of vectors of probabilities, of the concentrations alpha [n]."""

    @staticmethod
    def logpdf(x: ArrayLike, alpha: ArrayLike) -> Value:
        """The logarithm of the density at `x` [n, ...], or [n - 1, ...] without the last component; -inf off the
        simplex.

        Raises ShapeError if the shapes do not fit.
        """
        value, sizes = as_floating(x), as_floating(alpha)
        if sizes.ndim != 1 or not value.ndim or value.shape[0] not in (sizes.shape[0], sizes.shape[0] - 1):
            raise shape_error(
                f"dirichlet.logpdf takes x [n, ...] or [n - 1, ...] and alpha [n], got {value.type} and {sizes.type}"
            )
        if value.shape[0] != sizes.shape[0]:
            value = lnp.concatenate([value, 1 - lnp.sum(value, axis=0, keepdims=True)], axis=0)
        powers = lnp.reshape(sizes, (-1, *(1 for _ in value.shape[1:]))) - 1
        is_outside = lnp.any(value < 0, axis=0) | (lnp.abs(lnp.sum(value, axis=0) - 1) > 1e-5)
        inside = lnp.where(is_outside, 1 / sizes.shape[0], value)
        factor = special.gammaln(lnp.sum(sizes)) - lnp.sum(special.gammaln(sizes))
        found = lnp.sum(special.xlogy(powers, inside), axis=0) + factor
        result: Value = lnp.where(is_outside, -math.inf, found)
        return result

    @staticmethod
    def pdf(x: ArrayLike, alpha: ArrayLike) -> Value:
        """The density, as `logpdf`."""
        return lnp.exp(dirichlet.logpdf(x, alpha))


class multinomial:  # noqa: N801  # the name in SciPy
    """Multinomial distributions of counts: of `n` draws with the probabilities p [..., k]."""

    @staticmethod
    def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
        """The logarithm of the probability of the counts `x` [..., k]; -inf if they do not add up to `n`."""
        counts, total, chances = as_floating(x), as_value(n), as_floating(p)
        terms: Any = special.xlogy(counts, chances) - special.gammaln(counts + 1)
        found = special.gammaln(as_floating(total) + 1) + lnp.sum(terms, axis=-1)
        result: Value = lnp.where(lnp.sum(counts, axis=-1) == total, found, -math.inf)
        return result

    @staticmethod
    def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
        """The probability, as `logpmf`."""
        return lnp.exp(multinomial.logpmf(x, n, p))
