"""Updates times a number: fixed, or a schedule of the steps done."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation, empty_state, identity, stateless
from lavax.optim.tree.leafwise import leafwise
from lavax.optim.tree.moments import increment
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree


class ScaleByScheduleState(NamedTuple):
    """Steps done (int32)."""

    count: Any


def scale(step_size: Any) -> GradientTransformation:
    """Updates times `step_size`, a number or an array of rank 0."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return leafwise(lambda u: step_size * wide(u), updates), state

    return GradientTransformation(empty_state, update)


def scale_by_schedule(step_size_fn: Callable[[Any], Any]) -> GradientTransformation:
    """Updates times `step_size_fn(count)`, where `count` is the number of steps done before, int32."""

    def init(params: Any) -> ScaleByScheduleState:
        return ScaleByScheduleState(lnp.zeros((), lnp.int32))

    def update(updates: Any, state: ScaleByScheduleState, params: Any = None) -> tuple[Any, ScaleByScheduleState]:
        size = lnp.asarray(step_size_fn(state.count))

        def scaled(leaf: Any) -> Any:
            value = wide(leaf)
            return lnp.astype(size, value.dtype) * value

        return leafwise(scaled, updates), ScaleByScheduleState(increment(state.count))

    return GradientTransformation(init, update)


def scale_by_learning_rate(learning_rate: Any = None, *, flip_sign: bool = True) -> GradientTransformation:
    """Updates times minus the learning rate: a number, an array of rank 0, or a schedule of the steps done.

    `flip_sign=False` leaves out the minus; a learning rate of None leaves the updates as they are.
    """
    if learning_rate is None:
        return identity()
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    return scale(sign * learning_rate)


def centralize() -> GradientTransformation:
    """Updates of rank 2 and more minus their mean over all axes but the first (Yong et al. 2020)."""

    def centred(update: Any) -> Any:
        value = wide(update)
        return value - lnp.mean(value, axis=tuple(range(1, value.ndim)), keepdims=True) if value.ndim > 1 else value

    return stateless(lambda updates, params: pytree.map(centred, updates))


def normalize_by_update_norm(scale_factor: Any = 1.0, eps: Any = 1e-6) -> GradientTransformation:
    """Updates divided by (their global norm + `eps`) / `scale_factor`."""

    def normalized(updates: Any, params: Any) -> Any:
        length = (norm(updates) + eps) / scale_factor
        return pytree.map(lambda u: wide(u) / length, updates)

    return stateless(normalized)
