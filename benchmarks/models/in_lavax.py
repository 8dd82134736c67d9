"""A model in lavax: inference and a training step with Adam, each one compiled program."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import lavax as lx
from benchmarks.models.measurement import Results, Timed, timed
from benchmarks.models.workload import Arrays, ModelWorkload
from lavax import mixed_precision, optim
from lavax.mixed_precision import Policy

RATE = 1e-4


def results(workload: ModelWorkload, model: Any, inputs: Arrays) -> Results:
    """Output, loss and gradients."""
    gradient = lx.compile(lx.value_and_grad(workload.loss, has_aux=True))
    (loss, _), gradients = gradient(model, *inputs)
    output = np.asarray(lx.compile(workload.call)(model, *inputs[: workload.arguments]))
    return Results(output, float(loss), workload.tensors(gradients))


def inference(workload: ModelWorkload, model: Any, inputs: Arrays, calls: int) -> Timed:
    function = lx.compile(workload.call)
    given = lx.device_put(inputs[: workload.arguments])
    first, seconds = timed(lambda: function(model, *given), lambda result: result.block_until_ready(), calls)
    return _reported(function.lower(model, *given), first, seconds)


def training_step(workload: ModelWorkload, policy: Policy | None = None) -> tuple[Any, Any]:
    """A compiled training step, which takes and donates a model and the optimizer's state; and its optimizer."""
    optimizer = optim.adam(RATE)
    gradient = lx.value_and_grad if policy is None else partial(mixed_precision.value_and_grad, policy=policy)

    @partial(lx.compile, donate_argnums=(0, 1))
    def step(model: Any, state: Any, *inputs: Any) -> tuple[Any, Any, Any]:
        (loss, changed), gradients = gradient(workload.loss, has_aux=True)(model, *inputs)
        updates, state = optimizer.update(gradients, state, model)
        return workload.renewed(optim.apply_updates(model, updates), changed), state, loss

    return step, optimizer


def training(workload: ModelWorkload, model: Any, inputs: Arrays, calls: int, policy: Policy | None = None) -> Timed:
    """A training step; it donates the model, and so works on a copy."""
    step, optimizer = training_step(workload, policy)
    given = lx.device_put(inputs)
    held = [lx.tree.map(lambda leaf: leaf + 0, model), optimizer.init(model)]

    def call() -> Any:
        held[0], held[1], loss = step(*held, *given)
        return loss

    lowered = step.lower(*held, *given)
    first, seconds = timed(call, lambda loss: loss.block_until_ready(), calls)
    return _reported(lowered, first, seconds)


def _reported(lowered: Any, first: float, seconds: list[float]) -> Timed:
    kernels = lowered.compile().cost().kernels.values()
    return Timed(seconds, first, lowered.memory().peak, sum(kernel.times for kernel in kernels))
