"""How much noise an image has at each time of a diffusion."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

Numbers = np.ndarray


@dataclass(frozen=True)
class NoiseSchedule(Config):
    """x_t = √ᾱ_t·x + √(1 - ᾱ_t)·noise, with ᾱ_t the product of all 1 - β up to t (Ho et al. 2020).

    The names are those of a published scheduler_config.json. `beta_schedule` is "linear", "scaled_linear" (linear in
    √β: Stable Diffusion's) or "squaredcos_cap_v2" (the cosine schedule of Nichol and Dhariwal 2021). What the model
    predicts, `prediction_type`, is the noise ("epsilon"), the image ("sample") or √ᾱ·noise - √(1 - ᾱ)·image
    ("v_prediction", Salimans and Ho 2022). With `rescale_betas_zero_snr` nothing of the image is left at the last time
    (Lin et al. 2023). Samplers take `timestep_spacing`, `steps_offset` and what follows.
    """

    num_train_timesteps: int = 1000
    beta_start: float = 0.0001
    beta_end: float = 0.02
    beta_schedule: str = "linear"
    prediction_type: str = "epsilon"
    rescale_betas_zero_snr: bool = False
    timestep_spacing: str = "leading"
    steps_offset: int = 0
    set_alpha_to_one: bool = True
    clip_sample: bool = False
    clip_sample_range: float = 1.0
    use_karras_sigmas: bool = False

    def __post_init__(self) -> None:
        for name, known in (
            ("beta_schedule", BETAS),
            ("prediction_type", PREDICTIONS),
            ("timestep_spacing", ("leading", "linspace", "trailing")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"NoiseSchedule: {name} is one of {', '.join(known)}, got {getattr(self, name)!r}")

    @functools.cached_property
    def cumulative(self) -> Numbers:
        """ᾱ at each of the `num_train_timesteps` times, as float64."""
        made: Numbers = np.cumprod(1 - BETAS[self.beta_schedule](self))
        if not self.rescale_betas_zero_snr:
            return made
        roots = np.sqrt(made)
        rescaled: Numbers = np.square((roots - roots[-1]) * roots[0] / (roots[0] - roots[-1]))
        return rescaled

    def levels(self, times: ArrayLike, axes: int = 1) -> tuple[Value, Value]:
        """√ᾱ and √(1 - ᾱ) at integer `times` [N]: float32 [N, 1, ...] of so many `axes`."""
        taken = [
            lnp.take(lnp.asarray(table.astype(np.float32)), times, axis=0, mode="promise_in_bounds")
            for table in (np.sqrt(self.cumulative), np.sqrt(1 - self.cumulative))
        ]
        first, second = (lnp.reshape(each, (*each.shape, *(1 for _ in range(axes - 1)))) for each in taken)
        return first, second

    def noisy(self, images: ArrayLike, noise: ArrayLike, times: ArrayLike) -> Value:
        """Images [N, ...] with `noise` of the same shape, each at its own of `times` [N]."""
        given = as_value(images)
        signal, spread = self.levels(times, given.ndim)
        return cast(signal, given.type.dtype) * given + cast(spread, given.type.dtype) * noise

    def target(self, images: ArrayLike, noise: ArrayLike, times: ArrayLike) -> Value:
        """What a model should predict, given `noisy(images, noise, times)`."""
        given, added = as_value(images), as_value(noise)
        signal, spread = (cast(level, given.type.dtype) for level in self.levels(times, given.ndim))
        return PREDICTIONS[self.prediction_type](given, added, signal, spread)


def _linear(schedule: NoiseSchedule) -> Numbers:
    return np.linspace(schedule.beta_start, schedule.beta_end, schedule.num_train_timesteps)


def _scaled_linear(schedule: NoiseSchedule) -> Numbers:
    return np.linspace(schedule.beta_start**0.5, schedule.beta_end**0.5, schedule.num_train_timesteps) ** 2


def _cosine(schedule: NoiseSchedule) -> Numbers:
    edges = np.linspace(0, 1, schedule.num_train_timesteps + 1)
    left = np.square(np.cos((edges + 0.008) / 1.008 * math.pi / 2))
    return np.minimum(1 - left[1:] / left[:-1], 0.999)


BETAS: dict[str, Callable[[NoiseSchedule], Numbers]] = {
    "linear": _linear,
    "scaled_linear": _scaled_linear,
    "squaredcos_cap_v2": _cosine,
}

# What a model predicts, from image, noise and their levels √ᾱ and √(1 - ᾱ).
PREDICTIONS: dict[str, Callable[[Any, Any, Any, Any], Value]] = {
    "epsilon": lambda image, noise, signal, spread: noise,
    "sample": lambda image, noise, signal, spread: image,
    "v_prediction": lambda image, noise, signal, spread: signal * noise - spread * image,
}
