"""Flow matching with SmolVLA's action expert: its loss, and the steps from noise to actions."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32
from lavax.models.smolvla.expert import Prefix, SmolVLA
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.compiled.compile import compile
from lavax.tracer.values.value import Value


def denoising() -> Callable[..., Value]:
    """A function that turns noise into actions, by Euler's method from time 1 to 0. It holds one compiled step.

    It takes the model, normal numbers [B, T, max_action_dim], the prefix, and `steps`, by default the model's
    `num_steps`.
    """

    @compile(donate_argnums=0)
    def step(actions: Value, model: SmolVLA, time: Value, change: Value, prefix: Prefix) -> Value:
        return actions + cast(change, actions.type.dtype) * model(actions, time, prefix)

    def denoise(model: SmolVLA, noise: ArrayLike, prefix: Prefix, *, steps: int | None = None) -> Value:
        count = model.config.num_steps if steps is None else steps
        actions = as_value(noise) + 0  # a copy: each step writes over the actions of the last
        for index in range(count):
            actions = step(actions, model, np.float32(1 - index / count), np.float32(-1 / count), prefix)
        return actions

    return denoise


def flow_matching_loss(
    model: SmolVLA, actions: ArrayLike, noise: ArrayLike, times: ArrayLike, prefix: Prefix
) -> Value:
    """The mean square of the error of the velocity, noise - actions, at time·noise + (1 - time)·actions.

    `actions` and `noise` are [B, T, max_action_dim], `times` [B]; the result is a float32 number. Lipman et al. 2023.
    """
    clean, added = as_value(actions), as_value(noise)
    time = cast(lnp.reshape(times, (-1, 1, 1)), clean.type.dtype)
    made = model(time * added + (1 - time) * clean, times, prefix)
    return lnp.mean(lnp.square(cast(made, float32) - cast(added - clean, float32)))


def loss(model: SmolVLA, actions: ArrayLike, key: ArrayLike, prefix: Prefix) -> Value:
    """`flow_matching_loss` with random noise and `random_times`."""
    given = as_value(actions)
    for_noise, for_times = random.split(key)
    noise = random.normal(for_noise, given.shape, given.dtype)
    return flow_matching_loss(model, given, noise, random_times(for_times, given.shape[0]), prefix)


def random_times(key: ArrayLike, count: int) -> Value:
    """Times [count] as lerobot draws them to train: from Beta(1.5, 1), more noise than not, and above 0.001."""
    made: Value = 0.001 + 0.999 * random.uniform(key, (count,)) ** (2 / 3)  # time^1.5 is the share of lower ones
    return made
