"""Text to images against diffusers, with small models; the tokens of prompts against transformers."""
from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from lavax.models import diffusion
from lavax.models.diffusion import autoencoder, unet
from lavax.models.diffusion.pipeline import TextToImage, pictures
from lavax.models.diffusion.pipeline_folder import load_pipeline, save_pipeline
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.models.vision import clip_text
from tests.lavax.models.diffusion import test_autoencoder, test_unet
from tests.lavax.models.seeded import seed_torch, seeded_model
from tests.lavax.models.vision import test_clip_text

PROMPTS = ["A  lighthouse's LIGHT, in 1850!", "fog", "", "naïve café 😀 <|endoftext|> it'll"]
LATENT: dict[str, Any] = dict(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
VAE: dict[str, Any] = {**test_autoencoder.SMALL, "shift_factor": None}


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_tokenizer(folder: Path, length: int = 12) -> None:
    """vocab.json and merges.txt as CLIP has them, with a few merges."""
    from tokenizers.pre_tokenizers import ByteLevel

    folder.mkdir()
    letters = sorted(ByteLevel.alphabet())
    merges = [("l", "i"), ("g", "h"), ("li", "gh"), ("f", "o"), ("fo", "g</w>"), ("i", "n</w>"), ("a", "n")]
    names = [*letters, *(f"{letter}</w>" for letter in letters), *(a + b for a, b in merges)]
    vocabulary = {name: number for number, name in enumerate([*names, "<|startoftext|>", "<|endoftext|>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {"model_max_length": length, "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def test_tokens_are_those_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    write_tokenizer(tmp_path / "ours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = transformers.CLIPTokenizer.from_pretrained(tmp_path / "ours")
    wanted = theirs(PROMPTS, padding="max_length", max_length=12, truncation=True)["input_ids"]
    assert np.array_equal(PromptTokenizer.load(tmp_path / "ours")(PROMPTS), wanted)
    theirs.save_pretrained(tmp_path / "theirs")
    assert (tmp_path / "theirs" / "tokenizer.json").exists()
    assert np.array_equal(PromptTokenizer.load(tmp_path / "theirs")(PROMPTS), wanted)


def test_recorded_tokens(tmp_path: Path) -> None:
    """Of transformers 5.23.0."""
    write_tokenizer(tmp_path / "tokenizer", 8)
    found = PromptTokenizer.load(tmp_path / "tokenizer")(["Fog in light", "fog", "fog fog fog fog fog fog fog"])
    begin, end = 519, 520
    assert found.dtype == np.int32
    assert found[1].tolist() == [begin, 516, *[end] * 6]
    assert found[2].tolist() == [begin, *[516] * 6, end]


class StandIn(nn.Module):
    """A text encoder: a vector for each token."""

    table: Any

    def __call__(self, tokens: Any) -> Any:
        return self.table[tokens]


def small_pipeline(folder: Path) -> TextToImage:
    write_tokenizer(folder / "tokenizer")
    return TextToImage(
        PromptTokenizer.load(folder / "tokenizer"),
        StandIn(lx.device_put(draw(521, 12, seed=9))),
        seeded_model(unet.FAMILY, diffusion.UNetConfig(**test_unet.SMALL)),
        seeded_model(autoencoder.FAMILY, diffusion.AutoencoderConfig(**VAE)),
        NoiseSchedule(**LATENT, steps_offset=1, set_alpha_to_one=False),
    )


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("guidance", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["DDIMScheduler", "EulerDiscreteScheduler"])
def test_images_are_those_of_diffusers(tmp_path: Path, kind: str, guidance: float) -> None:
    pytest.importorskip("torch", reason="compares with diffusers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diffusers = pytest.importorskip("diffusers", reason="compares with diffusers")
        import torch

        pipeline = small_pipeline(tmp_path)
        more = {"clip_sample": False, "set_alpha_to_one": False} if kind == "DDIMScheduler" else {}
        theirs = diffusers.StableDiffusionPipeline(
            vae=seed_torch(diffusers.AutoencoderKL(**VAE)),
            unet=seed_torch(diffusers.UNet2DConditionModel(**test_unet.SMALL)),
            scheduler=getattr(diffusers, kind)(**LATENT, steps_offset=1, timestep_spacing="leading", **more),
            text_encoder=None,
            tokenizer=None,
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
        theirs.set_progress_bar_config(disable=True)
        noise, context = draw(2, 4, 8, 8, seed=1), np.asarray(pipeline.context(PROMPTS[:2]))
        negative = np.asarray(pipeline.context([""] * 2))
        wanted = theirs(
            prompt_embeds=torch.from_numpy(context),
            negative_prompt_embeds=torch.from_numpy(negative),
            latents=torch.from_numpy(noise),
            guidance_scale=guidance,
            num_inference_steps=4,
            height=16,
            width=16,
            output_type="np",
        ).images
    sampler = diffusion.ddim if kind == "DDIMScheduler" else diffusion.euler
    got = pipeline.images(noise, context, negative, guidance=guidance, steps=4, sampler=sampler)
    assert got.dtype == np.uint8
    assert np.abs(got - 255 * wanted).max() <= 0.51
    assert np.ptp(got) > 60


@pytest.mark.usefixtures("reference_backend")
def test_images_follow_prompt_key_and_size(tmp_path: Path) -> None:
    make = small_pipeline(tmp_path)
    settings: dict[str, Any] = dict(steps=2)
    first = make(["fog", "light"], key=lx.random.key(0), **settings)
    assert first.shape == (2, 16, 16, 3)
    assert np.array_equal(first, make(["fog", "light"], key=lx.random.key(0), **settings))
    assert not np.array_equal(first, make(["fog", "light"], key=lx.random.key(1), **settings))
    assert not np.array_equal(first[1], make(["fog", "fog"], key=lx.random.key(0), **settings)[1])
    assert make("fog", key=lx.random.key(0), height=24, width=8, **settings).shape == (1, 24, 8, 3)
    with pytest.raises(ValueError, match=r"multiples of 2, got \[16, 7\]"):
        make("fog", key=lx.random.key(0), width=7)


@pytest.mark.usefixtures("reference_backend")
def test_progress_wraps_the_steps(tmp_path: Path) -> None:
    seen = []

    def progress(steps: range) -> Any:
        for index in steps:
            seen.append(index)
            yield index

    make = small_pipeline(tmp_path)
    make("fog", key=lx.random.key(0), steps=3, sampler=diffusion.euler_ancestral, progress=progress)
    assert seen == [0, 1, 2]


def test_pictures_are_clipped_and_rounded() -> None:
    images = np.array([-2, -1, 0, 0.5, 1, 3], np.float32).reshape(1, 1, 2, 3)
    assert np.asarray(pictures(images)).ravel().tolist() == [0, 0, 128, 191, 255, 255]


@pytest.mark.usefixtures("reference_backend")
def test_a_folder_of_diffusers_makes_the_images_of_diffusers(tmp_path: Path) -> None:
    """From the prompt to the picture, with all weights of the folder."""
    pytest.importorskip("torch", reason="compares with diffusers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diffusers = pytest.importorskip("diffusers", reason="compares with diffusers")
        import torch
        import transformers

        write_tokenizer(tmp_path / "tokenizer")
        text = test_clip_text.SMALL | dict(vocab_size=521, hidden_size=12, eos_token_id=520)
        theirs = diffusers.StableDiffusionPipeline(
            vae=seed_torch(diffusers.AutoencoderKL(**VAE)),
            unet=seed_torch(diffusers.UNet2DConditionModel(**test_unet.SMALL)),
            scheduler=diffusers.PNDMScheduler(**LATENT, steps_offset=1, skip_prk_steps=True, set_alpha_to_one=False),
            text_encoder=seed_torch(transformers.CLIPTextModel(transformers.CLIPTextConfig(**text))),
            tokenizer=transformers.CLIPTokenizer.from_pretrained(tmp_path / "tokenizer"),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
        theirs.set_progress_bar_config(disable=True)
        theirs.save_pretrained(tmp_path / "published")
        # The published scheduler, whose schedule of noise DDIM takes over.
        theirs.scheduler = diffusers.DDIMScheduler.from_config(theirs.scheduler.config, clip_sample=False)
        make, noise = load_pipeline(tmp_path / "published"), draw(2, 4, 8, 8, seed=1)
        prompts, negative = ["fog in light", "An 1850 lighthouse"], "fog"
        more = dict(num_inference_steps=3, height=16, width=16, guidance_scale=5.0, output_type="np")
        wanted = theirs(prompts, negative_prompt=[negative] * 2, latents=torch.from_numpy(noise), **more).images
    got = make.images(noise, make.context(prompts), make.context([negative] * 2), guidance=5.0, steps=3)
    assert np.abs(got - 255 * wanted).max() <= 0.51
    assert np.ptp(got) > 60

    save_pipeline(make, tmp_path / "ours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = diffusers.StableDiffusionPipeline.from_pretrained(tmp_path / "ours")
        read.set_progress_bar_config(disable=True)
        assert type(read.scheduler) is diffusers.PNDMScheduler
        read.scheduler = theirs.scheduler
        again = read(prompts, negative_prompt=[negative] * 2, latents=torch.from_numpy(noise), **more).images
    assert np.array_equal(again, wanted)


@pytest.mark.usefixtures("reference_backend")
def test_a_saved_pipeline_is_loaded(tmp_path: Path) -> None:
    made = small_pipeline(tmp_path)
    settings = test_clip_text.SMALL | dict(vocab_size=521, hidden_size=12, eos_token_id=520)
    made = dataclasses.replace(made, text_encoder=seeded_model(clip_text.FAMILY, clip_text.CLIPTextConfig(**settings)))
    save_pipeline(made, tmp_path / "saved")
    read = load_pipeline(tmp_path / "saved", dtype="bfloat16")
    assert np.array_equal(read.tokenizer(PROMPTS), made.tokenizer(PROMPTS))
    assert read.schedule == dataclasses.replace(made.schedule, others=read.schedule.others)
    low, high = (each("fog", key=lx.random.key(0), steps=2) for each in (read, made))
    assert np.abs(low.astype(int) - high).mean() < 8


def test_a_folder_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    with pytest.raises(ValueError, match="of FluxPipeline; there are StableDiffusionPipeline, StableDiffusionXL"):
        load_pipeline(tmp_path)
