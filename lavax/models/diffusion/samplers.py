"""Samplers: the steps from noise to an image, as tables of what each step adds up."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.models.diffusion.schedule import NoiseSchedule

Numbers = np.ndarray


class Step(NamedTuple):
    """The numbers of one step; each is a number, or an array of them for all steps.

    The model gets input_scale·latents = signal·image + spread·noise at `time`, and predicts image and noise. The next
    latents are to_image·image + to_noise·noise + to_latents·latents + to_fresh·(new normal numbers).
    """

    time: Numbers
    input_scale: Numbers
    signal: Numbers
    spread: Numbers
    to_image: Numbers
    to_noise: Numbers
    to_latents: Numbers
    to_fresh: Numbers


@dataclass(frozen=True)
class Sampler:
    """Steps as rows of a table, float32 [steps, 8], and the size of the noise that they begin with."""

    rows: Numbers
    start: float

    @property
    def draws(self) -> bool:
        """Whether steps add new noise."""
        return bool(np.any(Step(*self.rows.T).to_fresh))


def _sampler(steps: Step, start: float = 1.0) -> Sampler:
    rows = np.stack(np.broadcast_arrays(*steps), axis=-1)
    return Sampler(rows.astype(np.float32), float(start))


# Times from the last to the first, of `count` in all, in `steps` steps (Lin et al. 2023, table 2).
_SPACINGS: dict[str, Callable[[int, int, int], Numbers]] = {
    "leading": lambda count, steps, offset: np.arange(steps)[::-1] * (count // steps) + float(offset),
    "linspace": lambda count, steps, offset: np.linspace(0, count - 1, steps)[::-1],
    "trailing": lambda count, steps, offset: np.round(count - np.arange(steps) * (count / steps)) - 1,
}


def _times(schedule: NoiseSchedule, steps: int) -> Numbers:
    count = schedule.num_train_timesteps
    if not 1 <= steps <= count:
        raise ValueError(f"A sampler of this schedule takes 1 to {count} steps, got {steps}")
    return _SPACINGS[schedule.timestep_spacing](count, steps, schedule.steps_offset)


def ddim(schedule: NoiseSchedule, steps: int, eta: float = 0.0) -> Sampler:
    """Denoising diffusion implicit models (Song et al. 2021), formula 12. `eta` of 1 adds as much noise as DDPM."""
    times = np.round(_times(schedule, steps)).astype(int)
    before = times - schedule.num_train_timesteps // steps
    last = 1.0 if schedule.set_alpha_to_one else schedule.cumulative[0]
    now, then = schedule.cumulative[times], np.where(before >= 0, schedule.cumulative[before], last)
    fresh = eta * np.sqrt((1 - then) / (1 - now) * (1 - now / then))
    to_noise = np.sqrt(np.maximum(1 - then - np.square(fresh), 0))
    zero = np.zeros(())
    return _sampler(Step(times, zero + 1, np.sqrt(now), np.sqrt(1 - now), np.sqrt(then), to_noise, zero, fresh))


def ddpm(schedule: NoiseSchedule, steps: int | None = None) -> Sampler:
    """Denoising diffusion probabilistic models (Ho et al. 2020), formula 7: every time of the schedule, or fewer.

    The variance is the smaller of the paper's two, that of an image that is known exactly.
    """
    count = schedule.num_train_timesteps
    times = np.round(_times(schedule, count if steps is None else steps)).astype(int)
    now = schedule.cumulative[times]
    then = np.append(now[1:], 1.0)
    share = now / then
    to_image = np.sqrt(then) * (1 - share) / (1 - now)
    to_latents = np.sqrt(share) * (1 - then) / (1 - now)
    fresh = np.where(times > 0, np.sqrt((1 - then) / (1 - now) * (1 - share)), 0)
    zero = np.zeros(())
    return _sampler(Step(times, zero + 1, np.sqrt(now), np.sqrt(1 - now), to_image, zero, to_latents, fresh))


def euler(schedule: NoiseSchedule, steps: int) -> Sampler:
    """Euler's method for the probability flow (Karras et al. 2022, algorithm 1), on latents image + sigma·noise."""
    times, sigmas = _sigmas(schedule, steps)
    return _of_sigmas(schedule, times, sigmas[:-1], sigmas[1:], np.zeros(()))


def euler_ancestral(schedule: NoiseSchedule, steps: int) -> Sampler:
    """As `euler`, but each step removes more noise, and adds new noise in its place."""
    times, sigmas = _sigmas(schedule, steps)
    now, then = sigmas[:-1], sigmas[1:]
    fresh = then * np.sqrt(1 - np.square(then / now))
    return _of_sigmas(schedule, times, now, np.square(then) / now, fresh)


def _of_sigmas(schedule: NoiseSchedule, times: Numbers, now: Numbers, to_noise: Numbers, fresh: Numbers) -> Sampler:
    scale = 1 / np.sqrt(1 + np.square(now))
    start = np.max(now) if schedule.timestep_spacing != "leading" else np.sqrt(1 + np.square(np.max(now)))
    one = np.ones(())
    return _sampler(Step(times, scale, scale, now * scale, one, to_noise, one - 1, fresh), start)


def _sigmas(schedule: NoiseSchedule, steps: int) -> tuple[Numbers, Numbers]:
    """The times of the steps, and the sizes of the noise before each and after the last: sqrt((1 - ᾱ) / ᾱ)."""
    times = _times(schedule, steps)
    cumulative = np.maximum(schedule.cumulative, 2.0**-24)  # without an image the size would be infinite
    table, places = np.sqrt((1 - cumulative) / cumulative), np.arange(schedule.num_train_timesteps)
    sigmas = np.interp(times, places, table)
    if schedule.use_karras_sigmas:
        sigmas = _karras(sigmas[-1], sigmas[0], steps)
        times = np.interp(np.log(sigmas), np.log(table), places)
    return times, np.append(sigmas, 0.0)


def _karras(lowest: float, highest: float, steps: int) -> Numbers:
    """Sizes of noise whose seventh roots are equally spaced (Karras et al. 2022, formula 5)."""
    return np.linspace(highest ** (1 / 7), lowest ** (1 / 7), steps) ** 7
