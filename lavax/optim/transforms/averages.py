"""Means of parameters over steps, and slow weights that follow fast ones."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation, require_params
from lavax.optim.tree.arithmetic import where
from lavax.optim.tree.moments import filled_part, increment, update_moment
from lavax.optim.tree.precision import cast_like, wide, zeros_like
from lavax.tracer.pytrees import pytree


class ParamsEmaState(NamedTuple):
    """Steps done (int32), and the running mean of the parameters, in float32 at least."""

    count: Any
    ema: Any


class LookaheadState(NamedTuple):
    """The state of the fast optimizer, and its steps since the slow weights moved (int32)."""

    fast_state: Any
    steps_since_sync: Any


class LookaheadParams(NamedTuple):
    """The parameters that gradients are taken at, and those that follow them."""

    fast: Any
    slow: Any

    @classmethod
    def init_synced(cls, params: Any) -> LookaheadParams:
        """Both at `params`, the slow ones as copies, so that both may be donated."""
        return cls(fast=params, slow=pytree.map(lnp.copy, params))


def params_ema(decay: Any) -> GradientTransformation:
    """Keeps the running mean of the parameters after each step; updates pass as they are. To be chained last.

    The mean begins at zero; `averaged_params(state)` corrects for that (Polyak and Juditsky 1992, with the weights of
    Adam's mean).
    """

    def init(params: Any) -> ParamsEmaState:
        return ParamsEmaState(lnp.zeros((), lnp.int32), zeros_like(params))

    def update(updates: Any, state: ParamsEmaState, params: Any = None) -> tuple[Any, ParamsEmaState]:
        require_params("params_ema", params)
        # As apply_updates will round them.
        moved = pytree.map(lambda p, u: (wide(p) + wide(u)).astype(lnp.asarray(p).dtype), params, updates)
        return updates, ParamsEmaState(increment(state.count), update_moment(moved, state.ema, decay, 1))

    return GradientTransformation(init, update)


def averaged_params(state: Any, decay: Any, params: Any) -> Any:
    """The mean that `params_ema(decay)` keeps anywhere in `state`, in the dtypes of `params`; `params` before a step.

    Raises ValueError if `state` has no such part.
    """
    held = _find(state)
    if held is None:
        raise ValueError("averaged_params: no part of the state is from params_ema; chain optim.params_ema(decay)")
    filled = filled_part(decay, lnp.maximum(held.count, 1))
    mean = pytree.map(lambda m, p: lnp.where(held.count > 0, m / filled, wide(p)), held.ema, params)
    return cast_like(mean, params)


def _find(state: Any) -> ParamsEmaState | None:
    if isinstance(state, ParamsEmaState):
        return state
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, (tuple, list)) else ()
    return next((found for part in parts if (found := _find(part)) is not None), None)


def lookahead(
    fast_optimizer: GradientTransformation, sync_period: int, slow_step_size: Any, reset_state: bool = False
) -> GradientTransformation:
    """k steps of a fast optimizer, then one of the slow weights towards the fast ones (Zhang et al. 2019).

    Parameters are `LookaheadParams`; gradients are those of the fast ones. `reset_state` begins the fast optimizer
    anew after each slow step. Raises ValueError for a period below 1.
    """
    if sync_period < 1:
        raise ValueError(f"lookahead: sync_period must be at least 1, got {sync_period}")

    def init(params: Any) -> LookaheadState:
        fast = params.fast if isinstance(params, LookaheadParams) else params
        return LookaheadState(fast_optimizer.init(fast), lnp.zeros((), lnp.int32))

    def update(updates: Any, state: LookaheadState, params: Any = None) -> tuple[LookaheadParams, LookaheadState]:
        if not isinstance(params, LookaheadParams):
            raise TypeError("lookahead: params must be optim.LookaheadParams.init_synced(params)")
        steps, fast_state = fast_optimizer.update(updates, state.fast_state, params.fast)
        sync = state.steps_since_sync == sync_period - 1
        apart = pytree.map(lambda f, u, s: wide(f) + wide(u) - wide(s), params.fast, steps, params.slow)
        slow = pytree.map(lambda distance: lnp.where(sync, slow_step_size * distance, 0), apart)
        back = pytree.map(lambda distance: lnp.where(sync, (1 - slow_step_size) * distance, 0), apart)
        fast = pytree.map(lambda u, distance: wide(u) - distance, steps, back)
        if reset_state:
            fast_state = where(sync, fast_optimizer.init(params.fast), fast_state)
        return LookaheadParams(fast, slow), LookaheadState(fast_state, (state.steps_since_sync + 1) % sync_period)

    return GradientTransformation(init, update)
