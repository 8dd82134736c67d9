"""Optimizers: pure functions from gradients to updates, over pytrees of float arrays.

They have optax's form: `init(params)` returns the state, a pytree; `update(gradients, state, params)` returns the
updates and the next state; `apply_updates` adds the updates to the parameters. Inside a compiled step with donated
parameters and state, everything runs in place.

    optimizer = optim.adam(1e-3)
    state = optimizer.init(params)
    updates, state = optimizer.update(gradients, state, params)
    params = optim.apply_updates(params, updates)
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.tracer import Value
from lavax.tracer.pytrees import pytree

__all__ = [
    "AdamState",
    "Transformation",
    "adam",
    "adamw",
    "apply_updates",
    "chain",
    "clip_by_global_norm",
    "global_norm",
    "sgd",
]


class Transformation(NamedTuple):
    """Turns gradients into updates: `init(params) -> state`, `update(gradients, state, params) -> (updates, state)`."""

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class AdamState(NamedTuple):
    """State of `adam`: steps done (int32), and running means of the gradients and of their squares."""

    count: Any
    mean: Any
    square: Any


def apply_updates(params: Any, updates: Any) -> Any:
    """The sum of two trees of the same structure."""
    return pytree.map(lnp.add, params, updates)


def global_norm(tree: Any) -> Value:
    """The Euclidean norm of all numbers of a tree together."""
    return lnp.sqrt(sum((lnp.sum(lnp.square(leaf)) for leaf in pytree.leaves(tree)), start=lnp.zeros(())))


def chain(*transformations: Transformation) -> Transformation:
    """Transformations in sequence: each gets the updates of the previous one. Raises TypeError for anything else."""
    for transformation in transformations:
        if not isinstance(transformation, Transformation):
            raise TypeError(f"chain takes transformations such as optim.adam(1e-3), got {transformation!r:.80}")

    def init(params: Any) -> tuple[Any, ...]:
        return tuple(transformation.init(params) for transformation in transformations)

    def update(gradients: Any, state: tuple[Any, ...], params: Any = None) -> tuple[Any, tuple[Any, ...]]:
        if len(state) != len(transformations):
            what = f"a tuple of {len(transformations)} states"
            raise TypeError(f"chain: the state must come from init or the last update, {what}, got {state!r:.80}")
        following = []
        for transformation, part in zip(transformations, state, strict=True):
            gradients, part = transformation.update(gradients, part, params)
            following.append(part)
        return gradients, tuple(following)

    return Transformation(init, update)


def clip_by_global_norm(max_norm: Any) -> Transformation:
    """Scales gradients whose global norm exceeds `max_norm` down to that norm; to be chained before an optimizer.

    Raises ValueError for a negative number.
    """
    if isinstance(max_norm, (int, float)) and not max_norm >= 0:
        raise ValueError(f"clip_by_global_norm: max_norm must not be negative, got {max_norm}")

    def update(gradients: Any, state: tuple[()], params: Any = None) -> tuple[Any, tuple[()]]:
        factor = max_norm / lnp.maximum(global_norm(gradients), max_norm)
        return pytree.map(lambda gradient: gradient * factor, gradients), state

    return Transformation(lambda params: (), update)


def sgd(learning_rate: Any, momentum: float = 0.0) -> Transformation:
    """Gradient descent. With `momentum` m the step is along t, where t = gradient + m · (t of the previous step).

    `learning_rate` may be an array, so that it can change without a new trace.
    """

    def plain(gradients: Any, state: tuple[()], params: Any = None) -> tuple[Any, tuple[()]]:
        return pytree.map(lambda gradient: -learning_rate * gradient, gradients), state

    def with_momentum(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        trail = pytree.map(lambda gradient, trail: gradient + momentum * trail, gradients, state)
        return pytree.map(lambda trail: -learning_rate * trail, trail), trail

    if momentum:
        return Transformation(partial(pytree.map, lnp.zeros_like), with_momentum)
    return Transformation(lambda params: (), plain)


def adam(learning_rate: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Transformation:
    """Adam (Kingma and Ba 2015): steps of about `learning_rate` per parameter, by running means of its gradient.

    `b1` and `b2`, both in (0, 1), are the shares of the running means of gradient and squared gradient that are kept at
    each step. Raises ValueError for others, TypeError if `update` gets a state that is not from `init`.
    """
    return _adam("adam", learning_rate, b1, b2, eps, weight_decay=0.0)


def adamw(
    learning_rate: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-4
) -> Transformation:
    """`adam` with weight decay: at each step parameters shrink by `learning_rate * weight_decay` of themselves.

    Loshchilov and Hutter 2019. Its `update` needs the parameters. Raises the errors of `adam`, and TypeError without
    parameters.
    """
    return _adam("adamw", learning_rate, b1, b2, eps, weight_decay)


def _adam(name: str, learning_rate: Any, b1: float, b2: float, eps: float, weight_decay: float) -> Transformation:
    for argument, kept in (("b1", b1), ("b2", b2)):
        if not 0 < kept < 1:
            raise ValueError(f"{name}: {argument} must lie between 0 and 1, got {kept}")

    def init(params: Any) -> AdamState:
        mean, square = (pytree.map(lnp.zeros_like, params) for _ in range(2))
        return AdamState(lnp.zeros((), lnp.int32), mean, square)

    def update(gradients: Any, state: AdamState, params: Any = None) -> tuple[Any, AdamState]:
        if not isinstance(state, AdamState):
            raise TypeError(f"{name}: the state must come from init or the last update, got {state!r:.80}")
        if weight_decay and params is None:
            raise TypeError(f"{name}: weights decay, so update needs them: update(gradients, state, params)")
        count = state.count + 1
        mean = pytree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mean, gradients)
        square = pytree.map(lambda s, g: b2 * s + (1 - b2) * g * g, state.square, gradients)
        # The means start at zero; these factors correct for that.
        step = -learning_rate / _filled_part(b1, count)
        spread = lnp.rsqrt(_filled_part(b2, count))
        updates = pytree.map(lambda m, s: step * m / (lnp.sqrt(s) * spread + eps), mean, square)
        if weight_decay:
            updates = pytree.map(lambda u, p: u - learning_rate * weight_decay * p, updates, params)
        return updates, AdamState(count, mean, square)

    return Transformation(init, update)


def _filled_part(kept: float, count: Value) -> Value:
    """1 - kept^count, exact also where the power is near 1."""
    return -lnp.expm1(count * math.log(kept))
