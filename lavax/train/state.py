"""The usual training step: gradients of a loss, an optimizer's update, one program."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import mixed_precision, optim, random
from lavax.nn.modules.module import Module
from lavax.tracer.compiled.compile import compile
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.grad import value_and_grad

StepFunction = Callable[[Any, Any], tuple[Any, Any]]
Optimizer = optim.Transformation | optim.MultiSteps


class State(Module):
    """What a training step changes: a pytree for checkpoints. `step` counts the steps, int32."""

    model: Any
    optimizer: Any
    step: Any
    key: Any = None
    loss_scale: Any = None


def initial_state(
    model: Any, optimizer: Optimizer, *, key: Any = None, loss_scale: Any = None
) -> State:
    """The state before the first step.

    With a random `key`, `training_step` hands each step a key of its own. A `loss_scale` of `mixed_precision`, such as
    `DynamicLossScale.create()`, keeps gradients within float16's range.
    """
    return State(model, optimizer.init(model), lnp.int32(0), key, loss_scale)


def training_step(
    loss: Callable[..., Any], optimizer: Optimizer, *, policy: mixed_precision.Policy | None = None
) -> StepFunction:
    """A compiled function `step(state, batch) -> (state, metrics)` that goes down the gradient of a loss once.

    `loss(model, batch)` returns a scalar; or `(scalar, metrics)`, with a dict of more scalars to log; or `(scalar,
    metrics, model)`, with the model whose running statistics are new: what differs in it is taken over as it is, and
    everything else gets the optimizer's update. If the state has a key, `loss` is called with `key=`, another one for
    every step. The step's metrics are these scalars, the loss as "loss". The memory of the state is donated: use the
    one that is returned.

    Optimizers that need more than gradients get it: the loss as a function of the model, for line searches (`lbfgs`)
    and for estimates of its curvature (`sophia`).

    With a `policy`, the loss gets the model and the batch in the policy's dtype of computation; the model of the state
    keeps its own, and gradients are float32. If the state has a loss scale, a step whose gradients are not finite
    changes neither model nor optimizer, and the scale is one of the metrics, "loss scale".
    """


    def scalar_and_rest(model: Any, batch: Any, keywords: dict[str, Any]) -> tuple[Any, Any]:
        value, metrics, after = _parts(loss(model, batch, **keywords), model)
        return value, ({"loss": value, **metrics}, _replaced_leaves(model, after))

    general = optim.with_extra_args_support(optimizer)

    def step(state: State, batch: Any) -> tuple[State, dict[str, Any]]:
        keywords = {} if state.key is None else {"key": random.fold_in(state.key, state.step)}
        differentiated = _differentiated(scalar_and_rest, policy, state.loss_scale)
        (value, (metrics, new)), gradients = differentiated(state.model, batch, keywords)

        def value_of(model: Any, **others: Any) -> Any:
            model, given = (model, batch) if policy is None else policy.cast_to_compute((model, batch))
            return scalar_and_rest(model, given, keywords)[0]

        updates, optimizer_state = general.update(
            gradients, state.optimizer, state.model, value=value, grad=gradients, value_fn=value_of, obj_fn=value_of
        )
        leaves, structure = pytree.flatten(optim.apply_updates(state.model, updates))
        model = pytree.unflatten(structure, [_as(new.get(place, leaf), leaf) for place, leaf in enumerate(leaves)])
        after = State(model, optimizer_state, state.step + 1, state.key)
        return (after, metrics) if state.loss_scale is None else _scaled(state, after, metrics, gradients)

    compiled: StepFunction = compile(step, donate_argnums=0)
    return compiled


def _differentiated(
    function: Callable[..., Any], policy: mixed_precision.Policy | None, loss_scale: Any
) -> Callable[..., Any]:
    """The function's value, its other results, and its gradients."""
    if policy is None and loss_scale is None:
        return value_and_grad(function, has_aux=True)
    if policy is None:
        raise ValueError("training_step: the state has a loss_scale, so the step needs a policy, such as for float16")
    return mixed_precision.value_and_grad(function, policy, loss_scale, has_aux=True)


def _scaled(before: State, after: State, metrics: dict[str, Any], gradients: Any) -> tuple[State, dict[str, Any]]:
    """The state after a step with a loss scale, which is skipped unless all gradients are finite."""
    scale, is_finite = before.loss_scale, mixed_precision.all_finite(gradients)
    model, optimizer = mixed_precision.select_tree(
        is_finite, (after.model, after.optimizer), (before.model, before.optimizer)
    )
    adjusted = after.replace(model=model, optimizer=optimizer, loss_scale=scale.adjust(is_finite))
    return adjusted, {**metrics, "loss scale": lnp.asarray(scale.loss_scale, lnp.float32)}


def _as(new: Any, old: Any) -> Any:
    """`new` in the dtype of `old`: running statistics may come in that of the computation."""
    return new if new is old or new.dtype == old.dtype else lnp.astype(new, old.dtype)


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
