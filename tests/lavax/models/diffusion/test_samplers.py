"""Noise schedules and samplers: each step against diffusers, the loop, guidance, the loss."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.models import diffusion
from lavax.models.diffusion.sampling import next_latents
from lavax.models.diffusion.schedule import NoiseSchedule
from tests.lavax.models.seeded import assert_close

LATENT = dict(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def toy(model: Any, latents: Any, time: Any, conditioning: Any) -> Any:
    """A prediction that depends on everything."""
    shift = 0.0 if conditioning is None else conditioning
    return model * lnp.tanh(latents) + 0.1 * lnp.sin(time / 100) + shift


def scheduler(kind: str, **settings: Any) -> Any:
    pytest.importorskip("torch", reason="compares with diffusers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(pytest.importorskip("diffusers", reason="compares with diffusers"), kind)(**settings)


@pytest.mark.parametrize("more", [{}, {"rescale_betas_zero_snr": True}], ids=["", "zero at the end"])
@pytest.mark.parametrize("beta_schedule", ["linear", "scaled_linear", "squaredcos_cap_v2"])
def test_schedules_are_those_of_diffusers(beta_schedule: str, more: dict[str, Any]) -> None:
    theirs = scheduler("DDIMScheduler", beta_schedule=beta_schedule, **more)
    ours = NoiseSchedule(beta_schedule=beta_schedule, **more)
    np.testing.assert_allclose(ours.cumulative, theirs.alphas_cumprod.numpy(), rtol=1e-4, atol=1e-7)


SAMPLERS = {
    "DDIMScheduler": diffusion.ddim,
    "DDPMScheduler": diffusion.ddpm,
    "EulerDiscreteScheduler": diffusion.euler,
    "EulerAncestralDiscreteScheduler": diffusion.euler_ancestral,
}


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("DDIMScheduler", {**LATENT, "clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1}),
        ("DDIMScheduler", {**LATENT, "clip_sample": True, "clip_sample_range": 1.5}),
        ("DDIMScheduler", {**LATENT, "clip_sample": False, "prediction_type": "v_prediction"}),
        ("DDIMScheduler", {"clip_sample": False, "prediction_type": "sample", "timestep_spacing": "linspace"}),
        (
            "DDIMScheduler",
            {
                "clip_sample": False,
                "timestep_spacing": "trailing",
                "rescale_betas_zero_snr": True,
                "prediction_type": "v_prediction",
            },
        ),
        ("DDPMScheduler", {"clip_sample": True}),
        ("DDPMScheduler", {"clip_sample": False, "beta_schedule": "squaredcos_cap_v2", "timestep_spacing": "trailing"}),
        ("EulerDiscreteScheduler", {**LATENT, "timestep_spacing": "linspace"}),
        ("EulerDiscreteScheduler", {**LATENT, "timestep_spacing": "leading", "steps_offset": 1}),
        ("EulerDiscreteScheduler", {**LATENT, "timestep_spacing": "trailing", "prediction_type": "v_prediction"}),
        ("EulerDiscreteScheduler", {**LATENT, "timestep_spacing": "linspace", "use_karras_sigmas": True}),
        ("EulerAncestralDiscreteScheduler", {**LATENT, "timestep_spacing": "linspace"}),
    ],
)
def test_each_step_is_that_of_diffusers(
    kind: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = scheduler(kind, **settings)
    import torch

    steps, fresh = 7, draw(2, 3, 4, seed=1)
    module = __import__(type(theirs).__module__, fromlist=["randn_tensor"])
    if hasattr(module, "randn_tensor"):
        monkeypatch.setattr(module, "randn_tensor", lambda *shape, **kwargs: torch.from_numpy(fresh))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.set_timesteps(steps)
    ours = NoiseSchedule(**{"timestep_spacing": "leading", **settings})
    sampler = SAMPLERS[kind](ours, steps)
    assert sampler.start == pytest.approx(float(theirs.init_noise_sigma), rel=1e-4)
    np.testing.assert_allclose(sampler.rows[:, 0], theirs.timesteps.numpy(), rtol=1e-4, atol=1e-3)
    latents = draw(2, 3, 4, seed=2) * np.float32(sampler.start)
    for row, time in zip(sampler.rows, theirs.timesteps, strict=True):
        x = torch.from_numpy(latents)
        scaled = theirs.scale_model_input(x, time)
        assert_close(row[1] * latents, scaled.numpy(), 1e-5)
        prediction = np.array(toy(np.float32(0.9), scaled.numpy(), np.float32(time), None))
        more = dict(return_dict=False)
        wanted = theirs.step(torch.from_numpy(prediction), time, x, **more)[0].numpy()
        made = next_latents(ours, row, lx.device_put(latents), lx.device_put(prediction), lx.device_put(fresh))
        assert_close(made, wanted, 1e-4, f"at {time}")
        latents = wanted
    assert sampler.draws == ("DDPM" in kind or "Ancestral" in kind)


@pytest.mark.usefixtures("reference_backend")
def test_ddim_with_noise_is_that_of_diffusers() -> None:
    theirs = scheduler("DDIMScheduler", **LATENT, clip_sample=False)
    import torch

    theirs.set_timesteps(5)
    ours = NoiseSchedule(**LATENT)
    sampler, fresh, latents = diffusion.ddim(ours, 5, eta=0.7), draw(2, 3, seed=1), draw(2, 3, seed=2)
    for row, time in zip(sampler.rows, theirs.timesteps, strict=True):
        prediction, arrays = draw(2, 3, seed=int(time)), {}
        arrays["variance_noise"] = torch.from_numpy(fresh)
        wanted = theirs.step(torch.from_numpy(prediction), time, torch.from_numpy(latents), eta=0.7, **arrays)
        made = next_latents(ours, row, lx.device_put(latents), lx.device_put(prediction), lx.device_put(fresh))
        assert_close(made, wanted.prev_sample.numpy(), 1e-4)
        latents = wanted.prev_sample.numpy()


def test_noisy_images_and_targets_are_those_of_diffusers() -> None:
    theirs = scheduler("DDPMScheduler", **LATENT)
    import torch

    images, noise, times = draw(3, 2, 2, seed=1), draw(3, 2, 2, seed=2), np.array([0, 500, 999])
    arrays = [torch.from_numpy(array) for array in (images, noise, times)]
    schedule = NoiseSchedule(**LATENT, prediction_type="v_prediction")
    assert_close(schedule.noisy(images, noise, times), theirs.add_noise(*arrays).numpy(), 1e-5)
    assert_close(schedule.target(images, noise, times), theirs.get_velocity(*arrays).numpy(), 1e-5)


# The sums of the latents and of their squares after 7 steps with `toy`, of the schedulers of diffusers 0.42.1.
RECORDED = {
    "ddim": (diffusion.ddim, {**LATENT}, (-4.409442, 160.4912)),
    "euler": (diffusion.euler, {**LATENT, "timestep_spacing": "linspace"}, (-1.292556, 756.9169)),
}


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_values(name: str) -> None:
    make, settings, (total, squares) = RECORDED[name]
    schedule = NoiseSchedule(**settings)
    made = np.asarray(diffusion.sampling(schedule, toy)(np.float32(0.9), make(schedule, 7), draw(2, 3, 4, seed=2)))
    assert (made.sum(), np.square(made).sum()) == pytest.approx((total, squares), rel=1e-4)


def test_every_sampler_ends_at_the_image_that_a_perfect_model_sees() -> None:
    image, noise = draw(2, 3, seed=1), draw(2, 3, seed=2)
    for make in SAMPLERS.values():
        for kind in ("epsilon", "sample", "v_prediction"):
            schedule = NoiseSchedule(**LATENT, prediction_type=kind, timestep_spacing="linspace")

            def perfect(model: Any, x: Any, time: Any, conditioning: Any, schedule: NoiseSchedule = schedule) -> Any:
                times = lnp.full(2, time).astype("int32")
                signal, spread = schedule.levels(times, 2)
                return schedule.target(model, (x - signal * model) / spread, times)

            sample = diffusion.sampling(schedule, perfect)
            assert_close(sample(image, make(schedule, 4), noise, key=lx.random.key(3)), image, 2e-3, f"{make} {kind}")


def test_guidance_is_the_sum_of_two_predictions() -> None:
    schedule = NoiseSchedule(**LATENT)
    sampler, noise = diffusion.ddim(schedule, 3), draw(2, 3, seed=1)
    first, second = draw(2, 1, seed=2), draw(2, 1, seed=3)

    def by_hand(model: Any, latents: Any, time: Any, conditioning: Any) -> Any:
        away, towards = (toy(model, latents, time, each) for each in (first, second))
        return away + 3.0 * (towards - away)

    wanted = diffusion.sampling(schedule, by_hand)(np.float32(0.5), sampler, noise)
    sample = diffusion.sampling(schedule, diffusion.guided(toy))
    assert_close(sample(np.float32(0.5), sampler, noise, (first, second, 3.0)), wanted, 1e-5)


def test_one_compiled_step_serves_all_steps_and_samplers() -> None:
    traces = []

    def counted(model: Any, latents: Any, time: Any, conditioning: Any) -> Any:
        traces.append(1)
        return toy(model, latents, time, conditioning)

    schedule = NoiseSchedule(**LATENT)
    sample, noise = diffusion.sampling(schedule, counted), lx.device_put(draw(2, 3))
    sample(np.float32(0.5), diffusion.ddim(schedule, 5), noise)
    sample(np.float32(0.6), diffusion.euler(schedule, 3), noise)
    assert len(traces) == 1
    assert np.array_equal(noise, draw(2, 3))  # the caller's array is not donated


def test_new_noise_follows_the_key() -> None:
    schedule = NoiseSchedule(**LATENT)
    sample, sampler, noise = diffusion.sampling(schedule, toy), diffusion.euler_ancestral(schedule, 3), draw(2, 3)
    made = [np.asarray(sample(np.float32(0.5), sampler, noise, key=lx.random.key(n))) for n in (0, 0, 1)]
    assert np.array_equal(made[0], made[1])
    assert not np.array_equal(made[0], made[2])
    with pytest.raises(ValueError, match="give it a key="):
        sample(np.float32(0.5), sampler, noise)


def test_the_loss_of_a_perfect_model_is_zero_and_that_of_none_is_one() -> None:
    schedule = NoiseSchedule(**LATENT)
    images = lnp.zeros((64, 3, 4))

    def perfect(model: Any, noisy: Any, times: Any, conditioning: Any) -> Any:
        return noisy / schedule.levels(times, 3)[1]

    key = lx.random.key(0)
    assert float(diffusion.loss(None, images, key, schedule=schedule, predict=perfect)) < 1e-10
    nothing = diffusion.loss(None, images, key, schedule=schedule, predict=lambda model, x, times, more: 0 * x)
    assert float(nothing) == pytest.approx(1, abs=0.1)


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="beta_schedule is one of linear, scaled_linear"):
        NoiseSchedule(beta_schedule="quadratic")
    with pytest.raises(ValueError, match="prediction_type is one of"):
        NoiseSchedule(prediction_type="flow")
    with pytest.raises(ValueError, match="takes 1 to 1000 steps, got 1001"):
        diffusion.ddim(NoiseSchedule(), 1001)
