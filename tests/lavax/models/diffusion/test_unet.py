"""The U-Net of Stable Diffusion against diffusers: outputs, gradients, files."""
from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.models.diffusion.unet import FAMILY, UNet
from lavax.models.diffusion.unet_config import STABLE_DIFFUSION_1_5, STABLE_DIFFUSION_XL, UNetConfig
from tests.lavax.models.seeded import assert_close, gradients_by_name, seed_torch, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(
    sample_size=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    block_out_channels=(8, 16),
    layers_per_block=1,
    norm_num_groups=4,
    cross_attention_dim=12,
    attention_head_dim=2,
)
EXTRA_LARGE: dict[str, Any] = dict(
    SMALL,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=(2, 4),
    transformer_layers_per_block=(1, 2),
    use_linear_projection=True,
    addition_embed_type="text_time",
    addition_time_embed_dim=4,
    projection_class_embeddings_input_dim=34,
)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def inputs(height: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return draw(2, 4, height, 8, seed=1), np.array([7, 810]), draw(2, 5, 12, seed=2)


def added() -> dict[str, np.ndarray]:
    return dict(pooled=draw(2, 10, seed=3), sizes=np.array([[64, 64, 0, 0, 64, 64], [96, 64, 8, 0, 64, 64]]))


def loss(model: UNet, weights: np.ndarray, arguments: tuple[np.ndarray, ...], more: dict[str, np.ndarray]) -> Any:
    return lnp.mean(model(*arguments, **more) * weights)


def checkpoint(folder: Path, settings: dict[str, Any]) -> Any:
    """A model of diffusers that is saved in `folder`."""
    pytest.importorskip("torch", reason="compares with diffusers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diffusers = pytest.importorskip("diffusers", reason="compares with diffusers")
        made = seed_torch(diffusers.UNet2DConditionModel(**settings))
        made.save_pretrained(folder)
    return made


@pytest.mark.parametrize(
    ("settings", "more", "height"),
    [(SMALL, {}, 8), (SMALL, {}, 7), (EXTRA_LARGE, added(), 8)],
    ids=["stable diffusion", "odd height", "extra large"],
)
def test_outputs_and_gradients_are_those_of_diffusers(
    tmp_path: Path, settings: dict[str, Any], more: dict[str, np.ndarray], height: int
) -> None:
    oracle = checkpoint(tmp_path, settings)
    import torch

    model, arguments, weights = models.load(tmp_path), inputs(height), draw(2, 4, height, 8, seed=4)
    names = {"pooled": "text_embeds", "sizes": "time_ids"}
    wanted = oracle(
        *map(torch.from_numpy, arguments),
        added_cond_kwargs={names[name]: torch.from_numpy(value) for name, value in more.items()},
    ).sample
    assert_close(model(*arguments, **more), wanted.detach().numpy(), 1e-5)

    (wanted * torch.from_numpy(weights)).mean().backward()
    found = gradients_by_name(FAMILY, lx.grad(loss)(model, weights, arguments, more))
    for name, parameter in oracle.named_parameters():
        assert_close(found.pop(name), parameter.grad.numpy(), 1e-3, name)
    assert not found


def test_a_saved_model_is_read_by_diffusers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path / "theirs", SMALL)
    import diffusers
    import torch

    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    read = diffusers.UNet2DConditionModel.from_pretrained(tmp_path / "ours")
    assert read.state_dict().keys() == oracle.state_dict().keys()
    assert all(torch.equal(value, oracle.state_dict()[name]) for name, value in read.state_dict().items())
    ours, theirs = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("ours", "theirs"))
    assert ours == {name: value for name, value in theirs.items() if value is not None or name in ours}


# Of diffusers 0.42.1 and torch 2.13.0: the result at [:, :, 3, 5], the loss, and sums of squares of gradients.
_TO_KEY = "mid_block.attentions.0.transformer_blocks.0.attn2.to_k.weight"
RECORDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        SMALL,
        {
            "result": [[-0.105416, 0.393452, -0.750524, -0.035996], [0.060096, 0.872643, -1.164438, -0.308087]],
            "loss": 0.0252856,
            "squares": {
                "conv_in.weight": 0.0709004,
                "time_embedding.linear_1.bias": 1.754229e-4,
                "up_blocks.1.resnets.1.conv_shortcut.weight": 0.01506314,
                _TO_KEY: 1.780033e-4,
            },
        },
    ),
    (
        EXTRA_LARGE,
        {
            "result": [[0.123858, -0.312143, -0.338986, -0.115119], [-0.1906, -0.849032, -0.226859, -0.070138]],
            "loss": 0.0351148,
            "squares": {
                "conv_in.weight": 0.0700089,
                "time_embedding.linear_1.bias": 7.955278e-5,
                "add_embedding.linear_2.weight": 2.800421e-3,
                _TO_KEY: 1.289424e-4,
            },
        },
    ),
]


@pytest.mark.parametrize(("settings", "recorded"), RECORDED, ids=["stable diffusion", "extra large"])
def test_recorded_values(settings: dict[str, Any], recorded: dict[str, Any]) -> None:
    model = seeded_model(FAMILY, UNetConfig(**settings))
    more, weights = added() if settings is EXTRA_LARGE else {}, draw(2, 4, 8, 8, seed=4)
    assert_close(model(*inputs(), **more)[:, :, 3, 5], recorded["result"], 1e-5)
    value, gradients = lx.value_and_grad(loss)(model, weights, inputs(), more)
    assert float(value) == pytest.approx(recorded["loss"], rel=1e-4)
    found = gradients_by_name(FAMILY, gradients)
    for name, squares in recorded["squares"].items():
        assert float(np.sum(np.square(found[name]))) == pytest.approx(squares, rel=2e-3), name


def test_the_published_configurations_have_their_numbers_of_weights() -> None:
    for config, count in ((STABLE_DIFFUSION_1_5, 859_520_964), (STABLE_DIFFUSION_XL, 2_567_463_684)):
        form = lx.eval_shape(lambda config=config: UNet(config, key=lx.random.key(0)))
        assert sum(math.prod(leaf.shape) for leaf in lx.tree.leaves(form)) == count


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_in_low_precision_leave_the_dtype_of_latents(tmp_path: Path, dtype: str) -> None:
    model = seeded_model(FAMILY, UNetConfig(**SMALL))
    io.save_pretrained(model, tmp_path)
    low, (latents, times, context) = models.load(tmp_path, dtype=dtype), inputs()
    assert {str(leaf.dtype) for leaf in lx.tree.leaves(low)} == {dtype}
    assert low(latents.astype("float16"), times, context).dtype == "float16"
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    assert_close(low(latents, times, context), model(latents, times, context), 8 * unit)


def test_a_variant_of_the_weights_is_read(tmp_path: Path) -> None:
    model = seeded_model(FAMILY, UNetConfig(**SMALL))
    io.save_pretrained(model, tmp_path)
    stem = tmp_path / "diffusion_pytorch_model"
    stem.with_suffix(".safetensors").rename(stem.with_suffix(".fp16.safetensors"))
    read = models.load(tmp_path, variant="fp16")
    assert all(map(np.array_equal, lx.tree.leaves(read), lx.tree.leaves(model)))
    with pytest.raises(FileNotFoundError, match=r"diffusion_pytorch_model\.safetensors"):
        models.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mid_block_type": None}, "mid_block_type is None"),
        ({"class_embed_type": "timestep"}, "class_embed_type is 'timestep'"),
        ({"down_block_types": ["DownBlock2D"]}, "for each of 2 resolutions"),
        ({"up_block_types": ["AttnUpBlock2D", "UpBlock2D"]}, "AttnUpBlock2D is not one of"),
        ({"attention_head_dim": [1, 2, 3]}, "attention_head_dim must have an entry"),
        ({"addition_embed_type": "image"}, "addition_embed_type is 'text_time' or None"),
        ({"addition_embed_type": "text_time"}, "needs projection_class_embeddings_input_dim"),
    ],
)
def test_settings_that_the_model_does_not_have_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UNet(UNetConfig.from_json({**SMALL, **change}), key=lx.random.key(0))


def test_bad_arguments_are_named() -> None:
    with pytest.raises(lx.ShapeError, match=r"UNet: latents are \[N, 4, H, W\]"):
        seeded_model(FAMILY, UNetConfig(**SMALL))(draw(2, 3, 8, 8), 1, draw(2, 5, 12))
    with pytest.raises(lx.ShapeError, match=r"the context of f32\[2,4,8,8\] is \[2, T, D\], got f32\[1,5,12\]"):
        seeded_model(FAMILY, UNetConfig(**SMALL))(draw(2, 4, 8, 8), 1, draw(1, 5, 12))
    with pytest.raises(ValueError, match="needs pooled= and sizes="):
        seeded_model(FAMILY, UNetConfig(**EXTRA_LARGE))(*inputs())
