"""Densities estimated from samples, by a normal distribution around each."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import linalg, random
from lavax.base.quick_dataclasses import dataclass
from lavax.nn.functional import logsumexp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy.special import ndtr
from lavax.scipy.stats.vectors import multivariate_normal
from lavax.tracer.pytrees.registration import register_dataclass
from lavax.tracer.values.value import Value

# The factor on the samples' standard deviation, by the effective number of samples and the dimensions.
_BANDWIDTHS: dict[str, Callable[[Value, int], Value]] = {
    "scott": lambda count, d: lnp.power(count, -1.0 / (d + 4)),
    "silverman": lambda count, d: lnp.power(count * (d + 2) / 4.0, -1.0 / (d + 4)),
}


@register_dataclass
@dataclass(frozen=True, init=False)
class gaussian_kde:  # noqa: N801  # the name in SciPy
    """The density of samples `dataset` [n], or [d, n] in d dimensions, each with its own normal distribution around it.

    All have the covariance of the samples times the square of a factor: "scott" (the default), "silverman", a number,
    or a function of the estimate. `weights` [n] are those of the samples. A pytree: estimates go through compiled
    functions. Raises ShapeError for fewer than two numbers or weights that do not fit, ValueError for another
    `bw_method`.
    """

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: ArrayLike, bw_method: Any = None, weights: ArrayLike | None = None) -> None:
        data: Any = lnp.atleast_2d(as_floating(dataset))
        if data.ndim != 2 or data.size < 2:
            raise shape_error(f"gaussian_kde takes two samples or more, [n] or [d, n], got {data.type}")
        d, n = data.shape
        shares = lnp.full(n, 1.0 / n, dtype=data.dtype) if weights is None else as_floating(weights)
        if shares.shape != (n,):
            raise shape_error(f"gaussian_kde: {n} samples need weights [{n}], got {shares.type}")
        shares = shares / lnp.sum(shares)
        self._set(neff=1 / lnp.sum(shares * shares), dataset=data, weights=shares)
        around = data - (data @ shares)[:, None]
        spread = (around * shares) @ around.T / (1 - lnp.sum(shares * shares))
        factor = self._factor(bw_method, d)
        self._set(covariance=spread * factor**2, inv_cov=linalg.inv(spread) / factor**2)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _factor(self, method: Any, d: int) -> Any:
        if callable(method):
            return method(self)
        if method is None or isinstance(method, str):
            if (method or "scott") not in _BANDWIDTHS:
                raise ValueError(f"gaussian_kde: bw_method is 'scott', 'silverman', a number or a function: {method!r}")
            return _BANDWIDTHS[method or "scott"](self.neff, d)
        return method

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.dataset.shape[1])

    def evaluate(self, points: ArrayLike) -> Value:
        """The densities [m] at the points [m], or [d, m]. Raises ShapeError for other dimensions."""
        return lnp.exp(self.logpdf(points))

    __call__ = pdf = evaluate

    def logpdf(self, x: ArrayLike) -> Value:
        """The logarithms of `evaluate`."""
        points: Any = self._points(x)
        gaps = points.T[:, None, :] - self.dataset.T[None, :, :]
        squares = lnp.sum((gaps @ self.inv_cov) * gaps, axis=-1)
        scale = -0.5 * (self.d * math.log(2 * math.pi) + linalg.slogdet(self.covariance).logabsdet)
        return logsumexp(lnp.log(self.weights) - 0.5 * squares, axis=-1) + scale

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Value:
        """The integral of the density times that of a normal distribution, of `mean` [d] and `cov` [d, d]."""
        centre, matrix = lnp.reshape(as_floating(mean), (self.d,)), lnp.reshape(as_floating(cov), (self.d, self.d))
        return lnp.sum(self.weights * multivariate_normal.pdf(self.dataset.T, centre, self.covariance + matrix))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Value:
        """The integral of the density from `low` to `high`. Raises ShapeError in several dimensions."""
        if self.d != 1:
            raise shape_error(f"gaussian_kde.integrate_box_1d is defined in one dimension, not in {self.d}")
        scale = lnp.sqrt(self.covariance[0, 0])
        ends = [ndtr((as_floating(end) - self.dataset[0]) / scale) for end in (low, high)]
        return lnp.sum(self.weights * (ends[1] - ends[0]))

    def integrate_kde(self, other: gaussian_kde) -> Value:
        """The integral of the product of two densities. Raises ShapeError if their dimensions differ."""
        if other.d != self.d:
            raise shape_error(f"gaussian_kde.integrate_kde: the estimates have {self.d} and {other.d} dimensions")
        gaps = self.dataset.T[:, None, :] - other.dataset.T[None, :, :]
        densities = multivariate_normal.pdf(gaps, lnp.zeros(self.d), self.covariance + other.covariance)
        return lnp.sum(self.weights[:, None] * other.weights[None, :] * densities)

    def resample(self, key: ArrayLike, shape: tuple[int, ...] = ()) -> Value:
        """Samples [d, *shape] of the density."""
        for_choice, for_noise = random.split(key)
        chosen = random.choice(for_choice, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(for_noise, lnp.zeros(self.d), self.covariance, shape=shape)
        return lnp.add(self.dataset[:, chosen], lnp.moveaxis(noise, -1, 0))

    def _points(self, points: ArrayLike) -> Any:
        given: Any = lnp.atleast_2d(as_floating(points))
        if given.shape[0] != self.d and given.shape == (1, self.d):
            given = given.T
        if given.ndim != 2 or given.shape[0] != self.d:
            raise shape_error(f"gaussian_kde: points must be [{self.d}, m], got {given.type}")
        return given
