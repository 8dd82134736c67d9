"""Stable Diffusion XL from a folder of diffusers: the same images, and back."""
from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.models import diffusion
from lavax.models.diffusion import autoencoder, unet
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.vision import clip_text
from tests.lavax.models.diffusion import test_unet
from tests.lavax.models.diffusion.test_pipeline import LATENT, VAE, draw, write_tokenizer
from tests.lavax.models.seeded import seed_torch, seeded_model
from tests.lavax.models.vision import test_clip_text

pytestmark = pytest.mark.usefixtures("reference_backend")

UNET: dict[str, Any] = {
    **test_unet.EXTRA_LARGE, "cross_attention_dim": 28, "projection_class_embeddings_input_dim": 32,
}  # fmt: skip


@pytest.mark.parametrize("negative", ["", "fog"])
def test_images_are_those_of_diffusers(tmp_path: Path, negative: str) -> None:
    pytest.importorskip("torch", reason="compares with diffusers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diffusers = pytest.importorskip("diffusers", reason="compares with diffusers")
        import torch
        import transformers

        write_tokenizer(tmp_path / "tokenizer")
        tokenizer = transformers.CLIPTokenizer.from_pretrained(tmp_path / "tokenizer")
        text = test_clip_text.SMALL | dict(vocab_size=521, eos_token_id=520)
        first = transformers.CLIPTextConfig(**text | dict(hidden_size=12))
        theirs = diffusers.StableDiffusionXLPipeline(
            vae=seed_torch(diffusers.AutoencoderKL(**VAE)),
            unet=seed_torch(diffusers.UNet2DConditionModel(**UNET)),
            scheduler=diffusers.EulerDiscreteScheduler(**LATENT, steps_offset=1, timestep_spacing="leading"),
            text_encoder=seed_torch(transformers.CLIPTextModel(first)),
            text_encoder_2=seed_torch(transformers.CLIPTextModelWithProjection(transformers.CLIPTextConfig(**text))),
            tokenizer=tokenizer,
            tokenizer_2=tokenizer,
            add_watermarker=False,
        )
        theirs.set_progress_bar_config(disable=True)
        theirs.save_pretrained(tmp_path / "published")
        make, noise = diffusion.load_pipeline(tmp_path / "published"), draw(2, 4, 8, 8, seed=1)
        prompts = ["fog in light", "light"]
        given = dict(num_inference_steps=3, height=16, width=16, guidance_scale=5.0, output_type="np")
        given["negative_prompt"] = [negative] * 2 if negative else None
        wanted = theirs(prompts, latents=torch.from_numpy(noise), **given).images
    settings: dict[str, Any] = dict(guidance=5.0, steps=3, sampler=diffusion.euler)
    got = make.images(noise, make.context(prompts), make.away_from([negative] * 2), **settings)
    assert isinstance(make, diffusion.TextToImageXL)
    assert np.abs(got - 255 * wanted).max() <= 0.51
    assert np.ptp(got) > 60

    diffusion.save_pipeline(make, tmp_path / "ours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = diffusers.StableDiffusionXLPipeline.from_pretrained(tmp_path / "ours", add_watermarker=False)
        read.set_progress_bar_config(disable=True)
        assert np.array_equal(read(prompts, latents=torch.from_numpy(noise), **given).images, wanted)


def small_pipeline(folder: Path) -> diffusion.TextToImageXL:
    write_tokenizer(folder / "tokenizer")
    tokenizer = PromptTokenizer.load(folder / "tokenizer")
    text = test_clip_text.SMALL | dict(vocab_size=521, eos_token_id=520)
    configs = (
        clip_text.CLIPTextConfig(**text | dict(hidden_size=12)),
        clip_text.CLIPTextConfig(**text, architectures=("CLIPTextModelWithProjection",)),
    )
    first, second = (seeded_model(clip_text.FAMILY, config) for config in configs)
    return diffusion.TextToImageXL(
        tokenizer=tokenizer,
        text_encoder=first,
        unet=seeded_model(unet.FAMILY, diffusion.UNetConfig(**UNET)),
        autoencoder=seeded_model(autoencoder.FAMILY, diffusion.AutoencoderConfig(**VAE)),
        schedule=diffusion.NoiseSchedule(**LATENT),
        second_tokenizer=tokenizer,
        second_text_encoder=second,
    )


def test_a_saved_pipeline_is_loaded_and_its_images_follow_size_and_prompts(tmp_path: Path) -> None:
    made = small_pipeline(tmp_path)
    diffusion.save_pipeline(dataclasses.replace(made, zeros_for_empty=False), tmp_path / "saved")
    read = diffusion.load_pipeline(tmp_path / "saved")
    assert isinstance(read, diffusion.TextToImageXL)
    assert not read.zeros_for_empty
    given: dict[str, Any] = dict(key=lx.random.key(0), steps=1)
    assert np.array_equal(made("fog", negative="light", **given), read("fog", negative="light", **given))
    assert not np.array_equal(made("fog", **given), read("fog", **given)), "zeros are not the text of nothing"
    assert made("fog", width=24, **given).shape == (1, 16, 24, 3)


def test_the_conditioning_names_the_size_of_images(tmp_path: Path) -> None:
    found = small_pipeline(tmp_path).context(["fog", "light"], height=24)
    assert {name: array.shape for name, array in found.items()} == {
        "context": (2, 12, 28), "pooled": (2, 8), "sizes": (2, 6),
    }  # fmt: skip
    assert found["sizes"].tolist() == [[24, 16, 0, 0, 24, 16]] * 2
