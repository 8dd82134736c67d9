"""Adam, and those that differ from it in which second moment divides the first."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation
from lavax.optim.tree.leafwise import leafwise
from lavax.optim.tree.moments import bias_correction, increment, nesterov_mean, update_moment
from lavax.optim.tree.precision import cast, full_like, sizes_like, wide, zeros_like
from lavax.tracer.pytrees import pytree


class ScaleByAdamState(NamedTuple):
    """Steps done (int32), and running means of the gradients and of their squares."""

    count: Any
    mu: Any
    nu: Any


class ScaleByAmsgradState(NamedTuple):
    """`ScaleByAdamState` with the largest second moment so far."""

    count: Any
    mu: Any
    nu: Any
    nu_max: Any


class ScaleByAdanState(NamedTuple):
    """Means of the gradients, of their differences and of the extrapolated squares; last gradients; steps done."""

    m: Any
    v: Any
    n: Any
    g: Any
    t: Any


def check_shares(name: str, **shares: Any) -> None:
    """Raises ValueError for a number outside [0, 1), of which no running mean can be made. Arrays pass."""
    for argument, share in shares.items():
        if isinstance(share, (int, float)) and not 0 <= share < 1:
            raise ValueError(f"{name}: {argument} must lie between 0 and 1, got {share}")


def initial_adam_state(params: Any, mu_dtype: Any = None, start: float = 0) -> ScaleByAdamState:
    """No steps done, and both means `start`."""
    return ScaleByAdamState(lnp.zeros((), lnp.int32), full_like(params, start, mu_dtype), sizes_like(params, start))


def quotient(mean: Any, square: Any, eps: Any, eps_root: Any = 0.0) -> Any:
    """m / (√(v + eps_root) + eps), leaf by leaf."""

    def divided(m: Any, v: Any) -> Any:
        inside = v if isinstance(eps_root, (int, float)) and eps_root == 0 else v + eps_root
        return m / (lnp.sqrt(inside) + eps)

    return leafwise(divided, mean, square)


def scale_by_adam(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None, *,
    nesterov: bool = False,
) -> GradientTransformation:
    """The direction of Adam (Kingma and Ba 2015), or with `nesterov` that of NAdam (Dozat 2016).

    `b1` and `b2`, both in [0, 1), are the shares of the running means that are kept at each step. Raises ValueError for
    others.
    """
    check_shares("scale_by_adam", b1=b1, b2=b2)

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        nu = update_moment(updates, state.nu, b2, 2)
        mean = nesterov_mean(updates, mu, b1, count) if nesterov else bias_correction(mu, b1, count)
        direction = quotient(mean, bias_correction(nu, b2, count), eps, eps_root)
        return direction, ScaleByAdamState(count, cast(mu, mu_dtype), nu)

    return GradientTransformation(lambda params: initial_adam_state(params, mu_dtype), update)


def scale_by_amsgrad(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, mu_dtype: Any = None,
    bias_correction_mu: bool = True, bias_correction_nu: bool = True,
) -> GradientTransformation:
    """Adam's direction by the largest second moment so far (Reddi, Kale and Kumar 2018)."""
    check_shares("scale_by_amsgrad", b1=b1, b2=b2)

    def init(params: Any) -> ScaleByAmsgradState:
        return ScaleByAmsgradState(*initial_adam_state(params, mu_dtype), nu_max=sizes_like(params))

    def update(updates: Any, state: ScaleByAmsgradState, params: Any = None) -> tuple[Any, ScaleByAmsgradState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        nu = update_moment(updates, state.nu, b2, 2)
        mean = bias_correction(mu, b1, count) if bias_correction_mu else mu
        square = bias_correction(nu, b2, count) if bias_correction_nu else nu
        largest = pytree.map(lnp.maximum, state.nu_max, square)
        return quotient(mean, largest, eps, eps_root), ScaleByAmsgradState(count, cast(mu, mu_dtype), nu, largest)

    return GradientTransformation(init, update)


def scale_by_adan(
    b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-8, eps_root: Any = 0.0
) -> GradientTransformation:
    """The direction of Adan (Xie et al. 2022), which extrapolates by the differences of successive gradients."""
    check_shares("scale_by_adan", b1=b1, b2=b2, b3=b3)

    def init(params: Any) -> ScaleByAdanState:
        m, v, g = (zeros_like(params) for _ in range(3))
        return ScaleByAdanState(m, v, sizes_like(params), g, lnp.zeros((), lnp.int32))

    def update(updates: Any, state: ScaleByAdanState, params: Any = None) -> tuple[Any, ScaleByAdanState]:
        g = pytree.map(wide, updates)
        count = increment(state.t)
        change = pytree.map(lambda new, old: lnp.where(state.t == 0, 0, new - old), g, state.g)
        ahead = pytree.map(lambda new, step: new + (1 - b2) * step, g, change)
        m, v = update_moment(g, state.m, b1, 1), update_moment(change, state.v, b2, 1)
        n = update_moment(ahead, state.n, b3, 2)
        means = bias_correction(m, b1, count), bias_correction(v, b2, count)
        mean = pytree.map(lambda gradient, trend: gradient + (1 - b2) * trend, *means)
        return quotient(mean, bias_correction(n, b3, count), eps, eps_root), ScaleByAdanState(m, v, n, g, count)

    return GradientTransformation(init, update)
