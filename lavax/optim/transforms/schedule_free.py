"""Optimizers that need no schedule: gradients are taken between the fast weights and their mean.

Defazio et al. 2024, "The Road Less Scheduled", equations 5 to 7: y = (1 - b1)·z + b1·x, z moves by the gradient at y,
and x is the mean of all z. The parameters are y; x is for evaluation.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    require_params,
    with_extra_args_support,
)
from lavax.optim.tree.moments import increment
from lavax.optim.tree.precision import wide, wide_dtype
from lavax.tracer.pytrees import pytree


class ScheduleFreeState(NamedTuple):
    """b1, the sum of the weights of the mean, the next step (int32, from 1), the greatest rate, the state within, z."""

    b1: Any
    weight_sum: Any
    step_count: Any
    max_lr: Any
    base_optimizer_state: Any
    z: Any


def schedule_free(
    base_optimizer: GradientTransformation,
    learning_rate: Any,
    b1: float = 0.9,
    weight_lr_power: float = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """`base_optimizer`, which should have no momentum of its own, without a schedule that ends.

        optimizer = optim.schedule_free(optim.adam(1e-3, b1=0.0), learning_rate=1e-3)
        model_to_evaluate = optim.schedule_free_eval_params(state, params)

    `learning_rate` is that of `base_optimizer`, a number or a schedule of warm-up. In the mean, the weight of a step is
    the greatest rate so far, to the power of `weight_lr_power`. Raises ValueError unless 0 < b1 <= 1.
    """
    if not 0 < b1 <= 1:
        raise ValueError(f"schedule_free: b1 lies above 0 and up to 1, got {b1}")
    held = with_extra_args_support(base_optimizer)

    def init(params: Any) -> ScheduleFreeState:
        # A copy, so that parameters and state can both be donated.
        copies = pytree.map(lambda p: lnp.copy(lnp.asarray(p, state_dtype or wide_dtype(p))), params)
        first = lnp.ones((), lnp.int32)
        return ScheduleFreeState(lnp.float32(b1), lnp.zeros(()), first, lnp.zeros(()), held.init(params), copies)

    def update(
        updates: Any, state: ScheduleFreeState, params: Any = None, **extra: Any
    ) -> tuple[Any, ScheduleFreeState]:
        require_params("schedule_free", params)
        rate = learning_rate(state.step_count) if callable(learning_rate) else learning_rate
        greatest = lnp.maximum(state.max_lr, rate)
        weight = greatest**weight_lr_power
        total = state.weight_sum + weight
        share = lnp.where(total == 0, 0.0, weight / lnp.where(total == 0, 1.0, total))
        steps, inner = held.update(updates, state.base_optimizer_state, params, **extra)
        moved = pytree.map(lambda z, u: (wide(z) + wide(u)).astype(z.dtype), state.z, steps)
        means = pytree.map(lambda x, z: (1 - share) * x + share * wide(z), _means(params, state.z, b1), moved)
        changes = pytree.map(lambda x, z, p: b1 * x + (1 - b1) * wide(z) - wide(p), means, moved, params)
        return changes, ScheduleFreeState(state.b1, total, increment(state.step_count), greatest, inner, moved)

    return GradientTransformationExtraArgs(init, update)


def _means(params: Any, fast: Any, b1: Any) -> Any:
    """x, from y and z."""
    return pytree.map(lambda y, z: (wide(y) - (1 - b1) * wide(z)) / b1, params, fast)


def schedule_free_eval_params(state: ScheduleFreeState, params: Any) -> Any:
    """The mean that `schedule_free` keeps, for evaluation, in the dtypes of `params`.

    Raises TypeError for the state of something else.
    """
    if not isinstance(state, ScheduleFreeState):
        raise TypeError(f"schedule_free_eval_params: state is that of schedule_free, got {type(state).__name__}")
    means = _means(params, state.z, state.b1)
    return pytree.map(lambda mean, p: mean.astype(lnp.asarray(p).dtype), means, params)
