"""The autoencoder of latent diffusion against diffusers: both directions, gradients, files."""
from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.models.diffusion.autoencoder import (
    FAMILY,
    STABLE_DIFFUSION_AUTOENCODER,
    Autoencoder,
    AutoencoderConfig,
)
from lavax.models.load import from_tensors
from tests.lavax.models.seeded import assert_close, gradients_by_name, seed_torch, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    block_out_channels=(8, 16),
    layers_per_block=1,
    norm_num_groups=4,
    shift_factor=0.1,
)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


IMAGES, LATENTS = draw(2, 3, 8, 8, seed=1), draw(2, 4, 4, 4, seed=2)
OF_MOMENTS, OF_IMAGES = draw(2, 8, 4, 4, seed=3), draw(2, 3, 8, 8, seed=4)


def loss(model: Autoencoder) -> Any:
    """A number that depends on both directions."""
    moments = lnp.concatenate(model.moments(IMAGES), axis=1)
    return lnp.mean(moments * OF_MOMENTS) + lnp.mean(model.decode(LATENTS) * OF_IMAGES)


def checkpoint(folder: Path) -> Any:
    """A model of diffusers that is saved in `folder`."""
    pytest.importorskip("torch", reason="compares with diffusers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diffusers = pytest.importorskip("diffusers", reason="compares with diffusers")
        made = seed_torch(diffusers.AutoencoderKL(**SMALL))
        made.save_pretrained(folder)
    return made


def test_both_directions_and_gradients_are_those_of_diffusers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path)
    import torch

    model = models.load(tmp_path)
    found = oracle.encode(torch.from_numpy(IMAGES)).latent_dist
    assert_close(model.moments(IMAGES)[0], found.mean.detach().numpy(), 1e-5)
    assert_close(model.moments(IMAGES)[1], found.logvar.detach().numpy(), 1e-5)
    assert_close(model.encode(IMAGES), (found.mean.detach().numpy() - 0.1) * 0.18215, 1e-5)
    decoded = oracle.decode(torch.from_numpy(LATENTS) / 0.18215 + 0.1).sample
    assert_close(model.decode(LATENTS), decoded.detach().numpy(), 1e-5)

    moments = torch.cat([found.mean, found.logvar], 1)
    ((moments * torch.from_numpy(OF_MOMENTS)).mean() + (decoded * torch.from_numpy(OF_IMAGES)).mean()).backward()
    gradients = gradients_by_name(FAMILY, lx.grad(loss)(model))
    largest = max(float(parameter.grad.abs().max()) for parameter in oracle.parameters())
    for name, parameter in oracle.named_parameters():
        wanted, got = parameter.grad.numpy(), gradients.pop(name)
        if name.endswith("to_k.bias"):  # zero: it adds one number to all scores of a query
            assert np.abs(got).max() < 1e-6 * largest
        else:
            assert_close(got, wanted, 1e-3, name)
    assert not gradients


def test_a_saved_model_is_read_by_diffusers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path / "theirs")
    import diffusers
    import torch

    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    read = diffusers.AutoencoderKL.from_pretrained(tmp_path / "ours")
    assert read.state_dict().keys() == oracle.state_dict().keys()
    assert all(torch.equal(value, oracle.state_dict()[name]) for name, value in read.state_dict().items())
    assert read.config.shift_factor == 0.1


def test_recorded_values() -> None:
    """Of diffusers 0.42.1 and torch 2.13.0."""
    model = seeded_model(FAMILY, AutoencoderConfig(**SMALL))
    encoded = [[-0.1014768, -0.1016734, 0.0984192, -0.0099054], [-0.1437984, -0.1043477, 0.1081404, -0.0782996]]
    decoded = [[-0.528159, -0.848158, -0.265425], [-0.082405, -0.112976, -0.930751]]
    assert_close(model.encode(IMAGES)[:, :, 1, 2], encoded, 1e-5)
    assert_close(model.decode(LATENTS)[:, :, 3, 5], decoded, 1e-5)
    value, gradients = lx.value_and_grad(loss)(model)
    assert float(value) == pytest.approx(-0.01494566, rel=1e-4)
    found = gradients_by_name(FAMILY, gradients)
    squares_of = {
        "encoder.conv_in.weight": 0.01720479,
        "encoder.mid_block.attentions.0.to_q.weight": 4.514522e-4,
        "encoder.down_blocks.0.downsamplers.0.conv.bias": 5.487285e-4,
        "decoder.up_blocks.0.upsamplers.0.conv.weight": 0.1309476,
        "post_quant_conv.bias": 2.017097e-5,
    }
    for name, squares in squares_of.items():
        assert float(np.sum(np.square(found[name]))) == pytest.approx(squares, rel=2e-3), name


def test_old_names_of_attention_are_read() -> None:
    model = seeded_model(FAMILY, AutoencoderConfig(**SMALL))
    tensors = gradients_by_name(FAMILY, model)
    old = {}
    for name, tensor in tensors.items():
        for new, before in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
            name = name.replace(f"attentions.0.{new}.", f"attentions.0.{before}.")
        old[name] = tensor[:, :, None, None] if "attentions" in name and tensor.ndim == 2 else tensor
    assert "decoder.mid_block.attentions.0.proj_attn.weight" in old
    read = from_tensors(FAMILY, model.config, old)
    assert all(map(np.array_equal, lx.tree.leaves(read), lx.tree.leaves(model)))


def test_draws_have_the_distribution_of_the_encoder() -> None:
    model = seeded_model(FAMILY, AutoencoderConfig(**{**SMALL, "scaling_factor": 1.0, "shift_factor": None}))
    images = np.repeat(IMAGES[:1], 64, axis=0)
    mean, log_variance = map(np.asarray, model.moments(images))
    drawn = np.asarray(model.encode(images, lx.random.key(0)))
    normal = (drawn - mean) / np.exp(0.5 * log_variance)
    assert abs(normal.mean()) < 0.1
    assert normal.std() == pytest.approx(1, abs=0.1)


def test_the_published_configuration_has_its_number_of_weights() -> None:
    form = lx.eval_shape(lambda: Autoencoder(STABLE_DIFFUSION_AUTOENCODER, key=lx.random.key(0)))
    assert sum(math.prod(leaf.shape) for leaf in lx.tree.leaves(form)) == 83_653_863


def test_bad_settings_and_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="mid_block_add_attention is False"):
        AutoencoderConfig.from_json({**SMALL, "mid_block_add_attention": False})
    with pytest.raises(ValueError, match="up_block_types must be 'UpDecoderBlock2D' for each of 2"):
        AutoencoderConfig(**{**SMALL, "up_block_types": ("UpDecoderBlock2D",)})
    model = seeded_model(FAMILY, AutoencoderConfig(**SMALL))
    with pytest.raises(lx.ShapeError, match="multiples of 2"):
        model.encode(IMAGES[:, :, :7])
    with pytest.raises(lx.ShapeError, match=r"latents are \[N, 4, H, W\]"):
        model.decode(IMAGES)
