"""The usual training step: gradients of a loss, an optimizer's update, one program."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import optim, random
from lavax.nn.modules.module import Module
from lavax.tracer.compiled.compile import compile
from lavax.tracer.pytrees import pytree
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

    `loss(model, batch)` returns a scalar; or `(scalar, metrics)`, with a dict of more scalars to log; or `(scalar,
    metrics, model)`, with the model whose running statistics are new: what differs in it is taken over as it is, and
    everything else gets the optimizer's update. If the state has a key, `loss` is called with `key=`, another one for
    every step. The step's metrics are these scalars, the loss as "loss". The memory of the state is donated: use the
    one that is returned.
    """

    def scalar_and_rest(model: Any, batch: Any, keywords: dict[str, Any]) -> tuple[Any, Any]:
        value, metrics, after = _parts(loss(model, batch, **keywords), model)
        return value, ({"loss": value, **metrics}, _replaced_leaves(model, after))

    def step(state: State, batch: Any) -> tuple[State, dict[str, Any]]:
        keywords = {} if state.key is None else {"key": random.fold_in(state.key, state.step)}
        (_, (metrics, new)), gradients = value_and_grad(scalar_and_rest, has_aux=True)(state.model, batch, keywords)
        updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.model)
        leaves, structure = pytree.flatten(optim.apply_updates(state.model, updates))
        model = pytree.unflatten(structure, [new.get(place, leaf) for place, leaf in enumerate(leaves)])
        return State(model, optimizer_state, state.step + 1, state.key), metrics

    compiled: StepFunction = compile(step, donate_argnums=0)
    return compiled


def _parts(result: Any, model: Any) -> tuple[Any, dict[str, Any], Any]:
    """What a loss returned: the scalar, the other metrics, and the model as it is afterwards."""
    if not isinstance(result, tuple):
        return result, {}, model
    if len(result) not in (2, 3) or not isinstance(result[1], dict):
        raise ValueError("training_step: loss must return a scalar, (scalar, metrics) or (scalar, metrics, model)")
    return result[0], result[1], result[2] if len(result) == 3 else model


def _replaced_leaves(before: Any, after: Any) -> dict[int, Any]:
    """The leaves of `after` that are not the very values of `before`, by their places."""
    leaves, structure = pytree.flatten(before)
    pairs = zip(leaves, pytree.flatten_up_to(structure, after), strict=True)
    return {place: new for place, (old, new) in enumerate(pairs) if new is not old}
