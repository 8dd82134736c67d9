"""The loss that trains a diffusion model."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32
from lavax.models.diffusion.sampling import Predict, with_context
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value


def loss(
    model: Any,
    images: ArrayLike,
    key: ArrayLike,
    conditioning: Any = None,
    *,
    schedule: NoiseSchedule,
    predict: Predict = with_context,
) -> Value:
    """The mean square of the error at a random time for each image, and with random noise (Ho et al. 2020, formula 14).

    `images` [N, ...] are what the model makes: pictures, or latents; `predict` calls the model, as for `sampling`. The
    result is a float32 number.
    """
    given = as_value(images)
    for_times, for_noise = random.split(key)
    times = random.randint(for_times, given.shape[:1], 0, schedule.num_train_timesteps)
    noise = random.normal(for_noise, given.shape, given.dtype)
    made = predict(model, schedule.noisy(given, noise, times), times, conditioning)
    error = cast(made, float32) - cast(schedule.target(given, noise, times), float32)
    return lnp.mean(lnp.square(error))
