"""Updates divided by the root of accumulated squares: AdaGrad, RMSProp, AdaDelta, SM3."""
from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation
from lavax.optim.tree.moments import bias_correction, increment, update_moment
from lavax.optim.tree.precision import size_dtype, sizes_like, squared_size, wide, zeros_like
from lavax.tracer.pytrees import pytree


class ScaleByRssState(NamedTuple):
    """Sums of squares."""

    sum_of_squares: Any


class ScaleByRmsState(NamedTuple):
    """Running means of squares."""

    nu: Any


class ScaleByRmsWithCountState(NamedTuple):
    """Steps done (int32), and running means of squares."""

    count: Any
    nu: Any


class ScaleByRStdDevState(NamedTuple):
    """Running means, and those of squares."""

    mu: Any
    nu: Any


class ScaleByRStdDevWithCountState(NamedTuple):
    """Steps done (int32), running means, and those of squares."""

    count: Any
    mu: Any
    nu: Any


class ScaleByAdaDeltaState(NamedTuple):
    """Running means of squared gradients and of squared updates."""

    e_g: Any
    e_x: Any


class ScaleBySM3State(NamedTuple):
    """For each axis of each array the accumulated squares along it (a list), and the running mean of updates."""

    mu: Any
    nu: Any


def _inverse_root_of_sum(total: Any, eps: Any) -> Any:
    return lnp.where(total > 0, lnp.rsqrt(total + eps), 0)


def scale_by_rss(initial_accumulator_value: float = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """Updates over the root of the sum of all squares so far (AdaGrad: Duchi, Hazan and Singer 2011)."""

    def init(params: Any) -> ScaleByRssState:
        return ScaleByRssState(sizes_like(params, initial_accumulator_value))

    def update(updates: Any, state: ScaleByRssState, params: Any = None) -> tuple[Any, ScaleByRssState]:
        sums = pytree.map(lambda u, total: total + squared_size(u), updates, state.sum_of_squares)
        scaled = pytree.map(lambda u, total: wide(u) * _inverse_root_of_sum(total, eps), updates, sums)
        return scaled, ScaleByRssState(sums)

    return GradientTransformation(init, update)


def _inverse_root(value: Any, eps: Any, eps_in_sqrt: bool) -> Any:
    return lnp.rsqrt(value + eps) if eps_in_sqrt else 1 / (lnp.sqrt(value) + eps)


def scale_by_rms(
    decay: Any = 0.9, eps: Any = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Updates over the root of the running mean of their squares (RMSProp: Tieleman and Hinton 2012)."""
    corrected = bias_correction

    def init(params: Any) -> Any:
        nu = sizes_like(params, initial_scale)
        return ScaleByRmsWithCountState(lnp.zeros((), lnp.int32), nu) if corrected else ScaleByRmsState(nu)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        nu = update_moment(updates, state.nu, decay, 2)
        following: Any = ScaleByRmsState(nu)
        square = nu
        if corrected:
            following = ScaleByRmsWithCountState(increment(state.count), nu)
            square = _corrected(nu, decay, following.count)
        return pytree.map(lambda u, v: wide(u) * _inverse_root(v, eps, eps_in_sqrt), updates, square), following

    return GradientTransformation(init, update)


def _corrected(moment: Any, decay: Any, count: Any) -> Any:
    return bias_correction(moment, decay, count)


def scale_by_stddev(
    decay: Any = 0.9, eps: Any = 1e-8, initial_scale: float = 0.0, eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Updates over their running standard deviation: RMSProp, centred (Graves 2013, equations 38 to 45)."""
    corrected = bias_correction

    def init(params: Any) -> Any:
        means = ScaleByRStdDevState(zeros_like(params), sizes_like(params, initial_scale))
        return ScaleByRStdDevWithCountState(lnp.zeros((), lnp.int32), *means) if corrected else means

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        mu, nu = update_moment(updates, state.mu, decay, 1), update_moment(updates, state.nu, decay, 2)
        following: Any = ScaleByRStdDevState(mu, nu)
        mean, square = mu, nu
        if corrected:
            following = ScaleByRStdDevWithCountState(increment(state.count), mu, nu)
            mean, square = (_corrected(moment, decay, following.count) for moment in (mu, nu))

        def scaled(u: Any, m: Any, v: Any) -> Any:
            return wide(u) * _inverse_root(v - squared_size(m), eps, eps_in_sqrt)

        return pytree.map(scaled, updates, mean, square), following

    return GradientTransformation(init, update)


def scale_by_adadelta(rho: Any = 0.9, eps: Any = 1e-6) -> GradientTransformation:
    """Updates times the root of the ratio of mean squared updates and gradients (AdaDelta: Zeiler 2012)."""

    def init(params: Any) -> ScaleByAdaDeltaState:
        return ScaleByAdaDeltaState(sizes_like(params), sizes_like(params))

    def update(updates: Any, state: ScaleByAdaDeltaState, params: Any = None) -> tuple[Any, ScaleByAdaDeltaState]:
        e_g = update_moment(updates, state.e_g, rho, 2)

        def scaled(u: Any, gradient: Any, step: Any) -> Any:
            return lnp.sqrt(step + eps) / lnp.sqrt(gradient + eps) * wide(u)

        steps = pytree.map(scaled, updates, e_g, state.e_x)
        return steps, ScaleByAdaDeltaState(e_g, update_moment(steps, state.e_x, rho, 2))

    return GradientTransformation(init, update)


def scale_by_sm3(b1: Any = 0.9, b2: Any = 1.0, eps: Any = 1e-8) -> GradientTransformation:
    """Updates over accumulated squares that are kept per row, column, ... only (SM3: Anil et al. 2019)."""
    share = 1.0 if isinstance(b2, (int, float)) and b2 == 1 else 1 - b2  # 1: sums, as in the paper

    def init(params: Any) -> ScaleBySM3State:
        def along_axes(leaf: Any) -> list[Any]:
            return [lnp.zeros(size, size_dtype(leaf)) for size in lnp.shape(leaf) or ((),)]

        return ScaleBySM3State(pytree.map(along_axes, params), zeros_like(params))

    def accumulated(update: Any, along_axes: list[Any]) -> Any:
        spread = [
            lnp.reshape(held, [-1 if other == axis else 1 for other in range(lnp.ndim(update))])
            for axis, held in enumerate(along_axes)
        ]
        return share * squared_size(update) + b2 * reduce(lnp.minimum, spread)

    def largest(total: Any) -> list[Any]:
        if total.ndim < 2:
            return [total]
        axes = range(total.ndim)
        return [lnp.max(total, axis=tuple(other for other in axes if other != axis)) for axis in axes]

    def update(updates: Any, state: ScaleBySM3State, params: Any = None) -> tuple[Any, ScaleBySM3State]:
        totals = pytree.map(accumulated, updates, state.mu)
        scaled = pytree.map(lambda u, total: wide(u) * _inverse_root_of_sum(total, eps), updates, totals)
        nu = update_moment(scaled, state.nu, b1, 1)
        return nu, ScaleBySM3State(pytree.map(largest, totals), nu)

    return GradientTransformation(init, update)
