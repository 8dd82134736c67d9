"""The usual training step: gradients of a loss, an optimizer's update, one program."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import optim, random
from lavax.nn.modules.module import Module
from lavax.tracer.compiled.compile import compile
from lavax.tracer.transforms.grad import value_and_grad

StepFunction = Callable[[Any, Any], tuple[Any, Any]]


class State(Module):
    """What a training step changes: a pytree for checkpoints. `step` counts the steps, int32."""

    model: Any
    optimizer: Any
    step: Any
    key: Any = None


def initial_state(model: Any, optimizer: optim.Transformation, *, key: Any = None) -> State:
    """The state before the first step. With a random `key`, `training_step` hands each step a key of its own."""
    return State(model, optimizer.init(model), lnp.int32(0), key)


def training_step(loss: Callable[..., Any], optimizer: optim.Transformation) -> StepFunction:
    """A compiled function `step(state, batch) -> (state, metrics)` that goes down the gradient of a loss once.

    `loss(model, batch)` returns a scalar, or a scalar and a dict of more scalars to log; if the state has a key, it is
    called with `key=`, another one for every step. The metrics are these scalars, the loss as "loss". The memory of the
    state is donated: use the one that is returned.
    """

    def with_metrics(model: Any, batch: Any, keywords: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        result = loss(model, batch, **keywords)
        value, metrics = result if isinstance(result, tuple) else (result, {})
        return value, {"loss": value, **metrics}

    def step(state: State, batch: Any) -> tuple[State, dict[str, Any]]:
        keywords = {} if state.key is None else {"key": random.fold_in(state.key, state.step)}
        (_, metrics), gradients = value_and_grad(with_metrics, has_aux=True)(state.model, batch, keywords)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.model)
        model = optim.apply_updates(state.model, updates)
        return State(model, optimizer_state, state.step + 1, state.key), metrics

    compiled: StepFunction = compile(step, donate_argnums=0)
    return compiled
