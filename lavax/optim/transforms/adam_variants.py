"""AdaMax, AdaBelief, Yogi and RAdam: Adam with another spread, or with a rectified one."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.adam import ScaleByAdamState, check_shares, initial_adam_state, quotient
from lavax.optim.transforms.transformation import GradientTransformation
from lavax.optim.tree.moments import bias_correction, filled_part, increment, nesterov_mean, update_moment
from lavax.optim.tree.precision import squared_size, wide
from lavax.tracer.pytrees import pytree


class ScaleByBeliefState(NamedTuple):
    """Steps done (int32), and running means of the gradients and of their squared errors."""

    count: Any
    mu: Any
    nu: Any


def scale_by_adamax(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformation:
    """The direction of AdaMax (Kingma and Ba 2015, section 7.1): the spread is a decaying maximum."""
    check_shares("scale_by_adamax", b1=b1, b2=b2)

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        nu = pytree.map(lambda u, v: lnp.maximum(lnp.abs(wide(u)) + eps, b2 * v), updates, state.nu)
        return pytree.map(lnp.divide, bias_correction(mu, b1, count), nu), ScaleByAdamState(count, mu, nu)

    return GradientTransformation(initial_adam_state, update)


def scale_by_belief(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16, *, nesterov: bool = False
) -> GradientTransformation:
    """The direction of AdaBelief (Zhuang et al. 2020): the spread is that of gradients around their mean."""
    check_shares("scale_by_belief", b1=b1, b2=b2)

    def init(params: Any) -> ScaleByBeliefState:
        return ScaleByBeliefState(*initial_adam_state(params))

    def update(updates: Any, state: ScaleByBeliefState, params: Any = None) -> tuple[Any, ScaleByBeliefState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        surprise = pytree.map(lambda u, m: wide(u) - m, updates, mu)
        nu = pytree.map(lambda v: v + eps_root, update_moment(surprise, state.nu, b2, 2))
        mean = nesterov_mean(updates, mu, b1, count) if nesterov else bias_correction(mu, b1, count)
        return quotient(mean, bias_correction(nu, b2, count), eps), ScaleByBeliefState(count, mu, nu)

    return GradientTransformation(init, update)


def scale_by_yogi(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-3, eps_root: Any = 0.0, initial_accumulator_value: float = 1e-6
) -> GradientTransformation:
    """The direction of Yogi (Zaheer et al. 2018): the second moment moves towards the square at a bounded pace."""
    check_shares("scale_by_yogi", b1=b1, b2=b2)

    def approached(update: Any, v: Any) -> Any:
        square = squared_size(update)
        return v - (1 - b2) * lnp.sign(v - square) * square

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        nu = pytree.map(approached, updates, state.nu)
        direction = quotient(bias_correction(mu, b1, count), bias_correction(nu, b2, count), eps, eps_root)
        return direction, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(lambda params: initial_adam_state(params, start=initial_accumulator_value), update)


def scale_by_radam(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, eps_root: Any = 0.0, threshold: Any = 5.0, *,
    nesterov: bool = False,
) -> GradientTransformation:
    """The direction of rectified Adam (Liu et al. 2020): plain means until the spread's variance is tractable."""
    check_shares("scale_by_radam", b1=b1, b2=b2)
    longest = 2 / (1 - b2) - 1  # the paper's ρ_∞

    def update(updates: Any, state: ScaleByAdamState, params: Any = None) -> tuple[Any, ScaleByAdamState]:
        count = increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        nu = update_moment(updates, state.nu, b2, 2)
        filled = filled_part(b2, count)
        length = longest - 2 * count * (1 - filled) / filled  # the paper's ρ_t
        rectified = length >= threshold
        # Where it is not rectified, the root's argument may be negative, and 1 stands in for it.
        square = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        factor = lnp.sqrt(lnp.where(rectified, square, 1))
        mean = nesterov_mean(updates, mu, b1, count) if nesterov else bias_correction(mu, b1, count)
        divided = quotient(mean, bias_correction(nu, b2, count), eps, eps_root)
        direction = pytree.map(lambda d, m: lnp.where(rectified, factor * d, m), divided, mean)
        return direction, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(initial_adam_state, update)
