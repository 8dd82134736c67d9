"""Updates by the signs of gradients or of their means: Lion, sign descent, Rprop."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.adam import check_shares
from lavax.optim.transforms.transformation import GradientTransformation, stateless
from lavax.optim.tree.moments import increment, update_moment
from lavax.optim.tree.precision import cast, full_like, require_real, wide, zeros_like
from lavax.tracer.pytrees import pytree


class ScaleByLionState(NamedTuple):
    """Steps done (int32), and running means of the gradients."""

    count: Any
    mu: Any


class ScaleByRpropState(NamedTuple):
    """The step of every parameter, and its last update."""

    step_sizes: Any
    prev_updates: Any


_LION_MODES: dict[str, Callable[[Any, Any], Any]] = {
    "hard": lambda x, beta: lnp.sign(x),
    "smooth": lambda x, beta: lnp.tanh(beta * x),
    "refined": lambda x, beta: lnp.where(lnp.abs(x) < 1, x, lnp.sign(x)),
}


def scale_by_lion(
    b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None, *, mode: str = "hard", smooth_beta: Any = 1.0
) -> GradientTransformation:
    """The direction of Lion (Chen et al. 2023): the sign of a mean of gradient and running mean.

    `mode` "smooth" takes tanh(`smooth_beta` · x) for the sign, "refined" the value itself within (-1, 1). Raises
    ValueError for another mode.
    """
    check_shares("scale_by_lion", b1=b1, b2=b2)
    if mode not in _LION_MODES:
        raise ValueError(f"scale_by_lion: mode must be one of {', '.join(_LION_MODES)}, got {mode!r}")
    direction = _LION_MODES[mode]

    def init(params: Any) -> ScaleByLionState:
        return ScaleByLionState(lnp.zeros((), lnp.int32), zeros_like(params, mu_dtype))

    def update(updates: Any, state: ScaleByLionState, params: Any = None) -> tuple[Any, ScaleByLionState]:
        mixed = update_moment(updates, state.mu, b1, 1)
        mu = cast(update_moment(updates, state.mu, b2, 1), mu_dtype)
        return pytree.map(lambda x: direction(x, smooth_beta), mixed), ScaleByLionState(increment(state.count), mu)

    return GradientTransformation(init, update)


def scale_by_sign() -> GradientTransformation:
    """The signs of updates (Bernstein et al. 2018)."""
    return stateless(lambda updates, params: pytree.map(lambda u: lnp.sign(wide(u)), updates))


def scale_by_rprop(
    learning_rate: float, eta_minus: Any = 0.5, eta_plus: Any = 1.2, min_step_size: Any = 1e-6,
    max_step_size: Any = 50.0,
) -> GradientTransformation:
    """Resilient steps (Riedmiller and Braun 1993): longer while the gradient keeps its sign, else shorter."""

    def init(params: Any) -> ScaleByRpropState:
        require_real("scale_by_rprop", params)
        return ScaleByRpropState(full_like(params, learning_rate), zeros_like(params))

    def resized(agreement: Any, size: Any) -> Any:
        factor = lnp.where(agreement > 0, eta_plus, eta_minus)
        return lnp.where(agreement == 0, size, lnp.clip(size * factor, min_step_size, max_step_size))

    def update(updates: Any, state: ScaleByRpropState, params: Any = None) -> tuple[Any, ScaleByRpropState]:
        agreement = pytree.map(lambda u, previous: wide(u) * previous, updates, state.prev_updates)
        sizes = pytree.map(resized, agreement, state.step_sizes)
        steps = pytree.map(
            lambda a, u, size: lnp.where(a < 0, 0, size * lnp.sign(wide(u))), agreement, updates, sizes
        )
        return steps, ScaleByRpropState(sizes, steps)

    return GradientTransformation(init, update)
