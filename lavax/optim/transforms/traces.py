"""Memory of earlier updates: momentum, running means, and optimistic extrapolation."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation
from lavax.optim.tree.moments import bias_correction, increment, update_moment
from lavax.optim.tree.precision import cast, wide, zeros_like
from lavax.tracer.pytrees import pytree


class TraceState(NamedTuple):
    """Decaying sums of updates."""

    trace: Any


class EmaState(NamedTuple):
    """Steps done (int32), and running means of updates."""

    count: Any
    ema: Any


class ScaleByOptimisticGradientState(NamedTuple):
    """Whether no step was done, and the last gradients."""

    is_initial_step: Any
    previous_gradient: Any


def trace(decay: Any, nesterov: bool = False, accumulator_dtype: Any = None) -> GradientTransformation:
    """Momentum: t = update + `decay` · (t of the step before). With `nesterov`, update + `decay` · t.

    Sutskever et al. 2013. The sums are kept in `accumulator_dtype`, by default in float32 at least.
    """

    def init(params: Any) -> TraceState:
        return TraceState(zeros_like(params, accumulator_dtype))

    def added(updates: Any, held: Any) -> Any:
        return pytree.map(lambda u, t: wide(u) + decay * wide(t), updates, held)

    def update(updates: Any, state: TraceState, params: Any = None) -> tuple[Any, TraceState]:
        trail = added(updates, state.trace)
        return added(updates, trail) if nesterov else trail, TraceState(cast(trail, accumulator_dtype))

    return GradientTransformation(init, update)


def ema(decay: Any, debias: bool = True, accumulator_dtype: Any = None) -> GradientTransformation:
    """The running mean of updates, with `debias` divided by 1 - decay^t.

    For a mean of parameters see `params_ema`.
    """

    def init(params: Any) -> EmaState:
        return EmaState(lnp.zeros((), lnp.int32), zeros_like(params, accumulator_dtype))

    def update(updates: Any, state: EmaState, params: Any = None) -> tuple[Any, EmaState]:
        mean, count = update_moment(updates, state.ema, decay, 1), increment(state.count)
        shown = bias_correction(mean, decay, count) if debias else mean
        return shown, EmaState(count, cast(mean, accumulator_dtype))

    return GradientTransformation(init, update)


def scale_by_optimistic_gradient(alpha: Any = 1.0, beta: Any = 1.0) -> GradientTransformation:
    """(alpha + beta) · gradient - beta · (gradient of the step before) (Mokhtari, Ozdaglar and Pattathil 2019)."""

    def init(params: Any) -> ScaleByOptimisticGradientState:
        return ScaleByOptimisticGradientState(lnp.asarray(True), zeros_like(params))

    def update(updates: Any, state: ScaleByOptimisticGradientState, params: Any = None) -> tuple[Any, Any]:
        now = pytree.map(wide, updates)
        before = pytree.map(lambda g, p: lnp.where(state.is_initial_step, g, p), now, state.previous_gradient)
        ahead = pytree.map(lambda g, p: (alpha + beta) * g - beta * p, now, before)
        return ahead, ScaleByOptimisticGradientState(lnp.asarray(False), now)

    return GradientTransformation(init, update)
