"""Spherical harmonics, by the recurrence of normalised Legendre functions."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.application import real_numbers
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.values.value import Value

__all__ = ["sph_harm_y"]


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Value:
    """The spherical harmonic of degree `n` and order `m` at the polar angle `theta` and the azimuth `phi`, elementwise.

    They are orthonormal on the sphere, with the sign (-1)^m of Condon and Shortley, and complex; 0 if |m| > n, NaN
    for n < 0. `n_max` is the greatest degree, where `n` is traced; greater degrees are cut to it. Derivatives by both
    angles are those of autodiff: `diff_n` must be None. Raises ValueError for traced `n` without `n_max`.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n must be None: differentiate by theta and phi, by grad or jvp")
    highest = _greatest(n) if n_max is None else whole_number("n_max", n_max)
    polar, azimuth = (real_numbers("sph_harm_y", angle) for angle in (theta, phi))
    polar, azimuth = lnp.broadcast_arrays(polar, azimuth)
    kind = lnp.result_type(polar, azimuth)
    degree, order = (lnp.astype(number, kind) for number in (n, m))
    degree = lnp.minimum(degree, float(highest))
    size = lnp.abs(order)
    legendre = _legendre(degree, size, lnp.astype(polar, kind), highest)
    sign = lnp.where((order < 0) & (size % 2 == 1), -1.0, 1.0)
    angle = order * azimuth
    scaled = lnp.where(degree < 0, math.nan, sign * lnp.where(size > degree, 0.0, legendre))
    result: Value = scaled * lnp.cos(angle) + 1j * (scaled * lnp.sin(angle))
    return result


def _greatest(n: ArrayLike) -> int:
    try:
        return int(np.max(np.asarray(n), initial=0))
    except TypeError as error:
        raise ValueError("sph_harm_y: n is traced: give n_max, its greatest value") from error


def _legendre(degree: Any, order: Any, theta: Any, highest: int) -> Any:
    """The functions of degree n and order m <= n, scaled for orthonormal harmonics, at cos θ.

    From degree 0 the order is raised up to m, then the degree up to n.
    """
    x, y = lnp.cos(theta), lnp.sin(theta)
    first = lnp.broadcast_arrays(lnp.full_like(theta, 0.5 / math.sqrt(math.pi)), degree, order)[0]

    def raised(step: Any, state: Any) -> Any:
        here, before = state
        k = lnp.astype(step, theta.dtype) + 1.0
        along = -lnp.sqrt((2 * k + 1) / (2 * k)) * y * here
        is_above = k > order
        gap = lnp.where(is_above, k * k - order * order, 1.0)
        lower = lnp.where(is_above, (k - 1) ** 2 - order * order, 0.0)
        factor, other = (4 * k * k - 1) / gap, lower / (4 * (k - 1) ** 2 - 1)
        upwards = lnp.sqrt(factor) * (x * here - lnp.sqrt(lnp.maximum(other, 0.0)) * before)
        following = lnp.where(is_above, upwards, along)
        is_open = k <= degree
        return lnp.where(is_open, following, here), lnp.where(is_open & is_above, here, before)

    return fori_loop(0, highest, raised, (first, lnp.zeros_like(first)))[0]
