"""The loop from noise to an image: compiled steps, with guidance."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32
from lavax.models.diffusion.samplers import Sampler, Step
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.compiled.compile import compile
from lavax.tracer.pytrees import pytree
from lavax.tracer.values.value import Value

# (model, latents [N, ...], time, conditioning) -> what the model predicts, of the shape of the latents. The
# conditioning is any pytree of arrays: a text's context, None.
Predict = Callable[[Any, Value, Value, Any], Value]

# Image and noise from the scaled latents, the prediction, and the levels of both in them.
_SPLIT: dict[str, Callable[[Any, Any, Any, Any], tuple[Value, Value]]] = {
    "epsilon": lambda x, made, signal, spread: ((x - spread * made) / signal, made),
    "sample": lambda x, made, signal, spread: (made, (x - signal * made) / spread),
    "v_prediction": lambda x, made, signal, spread: (signal * x - spread * made, spread * x + signal * made),
}


def with_context(model: Any, latents: Value, time: Value, context: Any) -> Value:
    """`Predict` of a U-Net: the context is an array, or a dict of that and all else the U-Net takes by keyword."""
    made: Value = model(latents, time, **context) if isinstance(context, dict) else model(latents, time, context)
    return made


def guided(predict: Predict = with_context) -> Predict:
    """A `Predict` that is led away from one conditioning and towards another (Ho and Salimans 2021).

    Its conditioning is (negative, positive, scale): negative + scale·(positive - negative) of the two predictions,
    which are made together, with twice the batch. Both conditionings have the batch of the latents.
    """

    def both(model: Any, latents: Value, time: Value, conditioning: tuple[Any, Any, ArrayLike]) -> Value:
        negative, positive, scale = conditioning
        (first, structure), (second, _) = pytree.flatten(negative), pytree.flatten(positive)
        pairs = [lnp.concatenate(pair, axis=0) for pair in zip(first, second, strict=True)]
        twice = lnp.concatenate([latents, latents], axis=0)
        away, towards = lnp.split(predict(model, twice, time, pytree.unflatten(structure, pairs)), 2, axis=0)
        return away + cast(as_value(scale), away.type.dtype) * (towards - away)

    return both


def next_latents(
    schedule: NoiseSchedule, row: ArrayLike, latents: Value, prediction: Value, fresh: Value | None = None
) -> Value:
    """The latents after a step, a row of `Sampler.rows`; computed in float32, in the dtype of the latents."""
    step = Step(*as_value(row))
    x, made = cast(latents, float32), cast(prediction, float32)
    image, noise = _SPLIT[schedule.prediction_type](step.input_scale * x, made, step.signal, step.spread)
    if schedule.clip_sample:
        image = lnp.clip(image, -schedule.clip_sample_range, schedule.clip_sample_range)
    result = step.to_image * image + step.to_noise * noise + step.to_latents * x
    if fresh is not None:
        result = result + step.to_fresh * fresh
    return cast(result, latents.type.dtype)


def sampling(schedule: NoiseSchedule, predict: Predict = with_context) -> Callable[..., Value]:
    """A function that makes images of noise. It holds one compiled step, which serves all samplers of the schedule.

        sample = diffusion.sampling(schedule, diffusion.guided())
        latents = sample(unet, diffusion.ddim(schedule, 50), noise, (negative, positive, 7.5))

    It takes the model, a sampler, normal numbers [N, ...] in the model's dtype, the conditioning that `predict` takes,
    for samplers that add noise a `key`, and `progress`, which wraps the steps, such as tqdm. The host runs ahead of
    the device, and each step writes over the latents of the last.
    """

    @compile(donate_argnums=0)
    def step(latents: Value, row: Value, model: Any, conditioning: Any, drawn: tuple[Value, Value] | None) -> Value:
        now = Step(*row)
        scaled = cast(as_value(now.input_scale), latents.type.dtype) * latents
        fresh = None if drawn is None else random.normal(random.fold_in(*drawn), latents.shape)
        return next_latents(schedule, row, latents, predict(model, scaled, as_value(now.time), conditioning), fresh)

    def sample(
        model: Any,
        sampler: Sampler,
        noise: ArrayLike,
        conditioning: Any = None,
        *,
        key: ArrayLike | None = None,
        progress: Callable[[range], Iterable[int]] = iter,
    ) -> Value:
        if sampler.draws and key is None:
            raise ValueError("sample: this sampler adds noise in its steps; give it a key=")
        latents = as_value(noise) * sampler.start
        for index in progress(range(len(sampler.rows))):
            drawn = (key, np.int32(index)) if sampler.draws else None
            latents = step(latents, sampler.rows[index], model, conditioning, drawn)
        return latents

    return sample
