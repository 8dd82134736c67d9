"""Gradients of several mini-batches taken as one, summed in float32."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.conditions import all_finite
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)
from lavax.optim.tree.arithmetic import where
from lavax.optim.tree.moments import increment
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import wide, zeros_like
from lavax.tracer.pytrees import pytree


class ApplyEvery(NamedTuple):
    """Updates summed since the last step (int32), and their sum."""

    count: Any
    grad_acc: Any


class MultiStepsState(NamedTuple):
    """Mini-batches since the last step and steps done (int32), the state within, and the gradients so far."""

    mini_step: Any
    gradient_step: Any
    inner_opt_state: Any
    acc_grads: Any
    skip_state: Any = ()


def apply_every(k: Any = 1) -> GradientTransformation:
    """Sums updates, and hands on the sum at every `k`-th step, zeros at the others. To be chained last."""

    def init(params: Any) -> ApplyEvery:
        return ApplyEvery(lnp.zeros((), lnp.int32), zeros_like(params))

    def update(updates: Any, state: ApplyEvery, params: Any = None) -> tuple[Any, ApplyEvery]:
        position = state.count % k
        sums = pytree.map(lambda u, held: lnp.where(position == 0, 0, held) + wide(u), updates, state.grad_acc)
        shown = pytree.map(lambda held: lnp.where(position == k - 1, held, 0), sums)
        return shown, ApplyEvery((state.count + 1) % k, sums)

    return GradientTransformation(init, update)


def skip_not_finite(updates: Any, gradient_step: Any, params: Any) -> tuple[Any, Any]:
    """For `MultiSteps`: skips mini-batches whose gradients hold an infinity or a NaN."""
    skip = ~all_finite(updates)
    bad = [lnp.sum(~lnp.isfinite(leaf)) for leaf in pytree.leaves(updates)]
    return skip, {"should_skip": skip, "num_not_finite": sum(bad[1:], start=bad[0])}


def skip_large_updates(updates: Any, gradient_step: Any, params: Any, max_squared_norm: Any) -> tuple[Any, Any]:
    """For `MultiSteps`: skips mini-batches whose gradients' squared global norm is not below `max_squared_norm`."""
    square = norm(updates, squared=True)
    skip = ~(square < max_squared_norm)
    return skip, {"should_skip": skip, "norm_squared": square}


class MultiSteps:
    """A step of `opt` for every `every_k_schedule` mini-batches, by the mean (or sum) of their gradients.

    Between steps updates are zero, and the state within stays. `every_k_schedule` is an integer, or a function of the
    steps done. `should_skip_update_fn(updates, gradient_step, params)` returns whether to leave a mini-batch out, and
    anything else to keep in the state. Gradients are summed in `accumulator_dtype`.
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Any], Any],
        use_grad_mean: bool = True,
        should_skip_update_fn: Callable[[Any, Any, Any], tuple[Any, Any]] | None = None,
        accumulator_dtype: Any = lnp.float32,
    ) -> None:
        self._opt = with_extra_args_support(opt)
        self._every = every_k_schedule
        self._use_grad_mean = use_grad_mean
        self._should_skip = should_skip_update_fn
        self._dtype = accumulator_dtype

    @property
    def inner_opt(self) -> GradientTransformationExtraArgs:
        """The optimizer that takes the steps."""
        return self._opt

    def init(self, params: Any) -> MultiStepsState:
        """No mini-batches, no steps."""
        none, no_steps = lnp.zeros((), lnp.int32), lnp.zeros((), lnp.int32)  # two arrays: each may be donated
        skip_state = () if self._should_skip is None else self._should_skip(zeros_like(params), none, params)[1]
        return MultiStepsState(none, no_steps, self._opt.init(params), zeros_like(params, self._dtype), skip_state)

    def update(self, updates: Any, state: MultiStepsState, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        """Adds gradients; after the last mini-batch of a step, the step's updates, else zeros."""
        every = self._every(state.gradient_step) if callable(self._every) else self._every
        gathered = pytree.map(lambda u, held: self._gathered(wide(u), held, state.mini_step), updates, state.acc_grads)
        new, following = self._opt.update(gathered, state.inner_opt_state, params, **extra)
        skip: Any = lnp.asarray(False)
        skip_state: Any = ()
        if self._should_skip is not None:
            skip, skip_state = self._should_skip(updates, state.gradient_step, params)
        emit = (state.mini_step == every - 1) & ~skip
        shown = pytree.map(lambda u: lnp.where(emit, u, 0), new)
        sums = pytree.map(
            lambda total, held: lnp.where(skip, held, lnp.where(emit, 0, total).astype(held.dtype)),
            gathered,
            state.acc_grads,
        )
        next_state = MultiStepsState(
            lnp.where(skip, state.mini_step, increment(state.mini_step) % every),
            lnp.where(emit, increment(state.gradient_step), state.gradient_step),
            where(emit, following, state.inner_opt_state),
            sums,
            skip_state,
        )
        return shown, next_state

    def _gathered(self, gradient: Any, held: Any, before: Any) -> Any:
        return held + (gradient - held) / (before + 1) if self._use_grad_mean else held + gradient

    def has_updated(self, state: MultiStepsState) -> Any:
        """Whether the last `update` took a step: a boolean array of rank 0."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """The same as a transformation, for `chain`."""
        return GradientTransformationExtraArgs(self.init, self.update)
