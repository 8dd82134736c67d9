"""ConvNeXt: against transformers in inference and in gradients, saved, with stochastic depth, and recorded values."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.models.convolution import ConvNext, ConvNextConfig, ConvNextV2Config
from lavax.models.family import Family, family_of
from tests.lavax.models.seeded import (
    assert_close,
    assert_gradients_close,
    gradients_by_name,
    seed_torch,
    seeded,
    seeded_model,
)

pytestmark = pytest.mark.usefixtures("reference_backend")

IMAGES = seeded("images", (3, 3, 24, 20))
SETTINGS: dict[str, Any] = dict(patch_size=4, num_stages=2, hidden_sizes=[8, 12], depths=[2, 1])
KINDS: dict[str, dict[str, Any]] = {
    "with layer scale": {"layer_scale_init_value": 1e-6},
    "without": {"layer_scale_init_value": 0.0},
    "version 2": {},
}


def family(kind: str) -> Family:
    return family_of("convnextv2" if kind == "version 2" else "convnext")


def config_of(kind: str, **settings: Any) -> Any:
    labels = {str(number): f"LABEL_{number}" for number in range(5)}
    return family(kind).config.from_json({**SETTINGS, **KINDS[kind], "id2label": labels, **settings})


def model_of(kind: str, **settings: Any) -> Any:
    return seeded_model(family(kind), config_of(kind, **settings))


def training_loss(model: Any) -> Any:
    return lnp.sum(lnp.sin(model(IMAGES)))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def oracle(kind: str) -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is compared with where it is installed")
    pytest.importorskip("torch", reason="torch is compared with where it is installed")
    name = "ConvNextV2" if kind == "version 2" else "ConvNext"
    config = getattr(transformers, f"{name}Config")(**SETTINGS, **KINDS[kind], num_labels=5)
    return seed_torch(getattr(transformers, f"{name}ForImageClassification")(config).double())


def test_logits_and_gradients_are_those_of_transformers(kind: str, oracle: Any) -> None:
    import torch

    logits = oracle(torch.from_numpy(np.array(IMAGES)).double()).logits
    loss = logits.sin().sum()
    loss.backward()
    model = model_of(kind)
    assert_close(model(IMAGES), logits.detach().numpy(), 1e-5)
    found, gradients = lx.value_and_grad(training_loss)(model)
    assert_close(found, loss.item(), 1e-5)
    assert_gradients_close(gradients_by_name(family(kind), gradients), oracle)


def test_a_folder_of_transformers_is_read_and_written(kind: str, oracle: Any, tmp_path: Path) -> None:
    import torch

    oracle.float().save_pretrained(tmp_path / "theirs")
    model = lx.models.load(tmp_path / "theirs")
    images = torch.from_numpy(np.array(IMAGES))
    assert_close(model(IMAGES), oracle(images).logits.detach().numpy(), 1e-5)
    lx.io.save_pretrained(model, tmp_path / "ours")
    again = type(oracle).from_pretrained(tmp_path / "ours").eval()
    assert torch.equal(again(images).logits, oracle(images).logits)


# By transformers 5.23 and torch 2.13 in float64, from the weights and images above: logits of the first image, the
# loss, and sums of squares of gradients.
RECORDED: dict[str, dict[str, Any]] = {
    "with layer scale": {
        "logits": [-0.84138813, 1.0853373, -1.43335664, -2.02128689, -0.43122557],
        "loss": -6.1896798,
        "squares": {
            "convnext.embeddings.patch_embeddings.weight": 6.2634015,
            "convnext.encoder.stages.0.layers.1.layer_scale_parameter": 3.0549422,
            "convnext.encoder.stages.1.layers.0.dwconv.weight": 0.57590088,
        },
    },
    "without": {
        "logits": [-1.42394702, 1.65245542, -1.22634528, -0.79173662, -0.80229406],
        "loss": -7.1333458,
        "squares": {
            "convnext.encoder.stages.0.layers.0.pwconv1.weight": 20.095754,
            "convnext.encoder.stages.1.downsampling_layer.0.weight": 13.992257,
            "convnext.layernorm.bias": 7.4424966,
        },
    },
    "version 2": {
        "logits": [0.80827706, -1.20417488, -0.96792574, -0.08796509, -0.17151214],
        "loss": -2.9553764,
        "squares": {
            "convnextv2.embeddings.patch_embeddings.bias": 1680.4053,
            "convnextv2.encoder.stages.0.layers.0.grn.weight": 19.007813,
            "convnextv2.encoder.stages.0.layers.1.pwconv1.weight": 37.828142,
        },
    },
}


def test_recorded_values(kind: str) -> None:
    model, recorded = model_of(kind), RECORDED[kind]
    assert_close(model(IMAGES)[0], recorded["logits"], 1e-5)
    found, gradients = lx.value_and_grad(training_loss)(model)
    assert float(found) == pytest.approx(recorded["loss"], rel=1e-5)
    by_name = gradients_by_name(family(kind), gradients)
    for name, squares in recorded["squares"].items():
        assert float(np.sum(np.square(by_name[name]))) == pytest.approx(squares, rel=1e-4), name


@pytest.mark.parametrize("build", [ConvNextConfig, ConvNextV2Config])
def test_a_model_made_in_python_is_read_by_transformers(build: type[ConvNextConfig], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers reads it where it is installed")
    torch = pytest.importorskip("torch", reason="transformers reads it where torch is installed")
    config = build(patch_size=(4, 2), hidden_sizes=(8, 12), depths=(1, 1), num_labels=3)
    model = ConvNext(config, key=lx.random.key(0))
    lx.io.save_pretrained(model, tmp_path)
    read, report = transformers.AutoModelForImageClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    logits = read.eval()(torch.from_numpy(np.array(IMAGES))).logits
    assert_close(model(IMAGES), logits.detach().numpy(), 1e-5)


@pytest.mark.parametrize(("config", "weights"), [(ConvNextConfig, 28_589_128), (ConvNextV2Config, 28_635_496)])
def test_the_defaults_are_as_large_as_published(config: type[ConvNextConfig], weights: int) -> None:
    """ConvNeXt-T and V2-T, of 28.6 million weights: Liu et al. (2022), table 1; Woo et al. (2023)."""
    form = lx.eval_shape(lambda: ConvNext(config(num_labels=1000), key=lx.random.key(0)))
    assert sum(np.prod(leaf.shape) for leaf in lx.tree.leaves(form)) == weights


def test_response_norms_start_as_nothing() -> None:
    block = ConvNext(config_of("version 2"), key=lx.random.key(0)).stages[0].blocks[0]
    x = lnp.asarray(seeded("hidden", (2, 3, 4, 32)))
    assert block.response is not None and np.array_equal(block.response(x), x)


def test_a_channel_without_a_response_has_a_derivative() -> None:
    block = model_of("version 2").stages[0].blocks[0]
    x = np.where(np.arange(32) == 5, 0, seeded("hidden", (2, 3, 4, 32))).astype(np.float32)
    slopes = lx.grad(lambda x: lnp.sum(lnp.sin(block.response(x))))(x)
    assert np.all(np.isfinite(np.asarray(slopes)))


def test_drop_rates_rise_from_block_to_block() -> None:
    model = ConvNext(config_of("without", drop_path_rate=0.5), key=lx.random.key(0))
    assert [block.drop_rate for stage in model.stages for block in stage.blocks] == [0.0, 0.25, 0.5]


def test_stochastic_depth_drops_blocks_of_whole_images() -> None:
    model = model_of("without", drop_path_rate=0.5)
    block, x = model.stages[1].blocks[0], lnp.asarray(seeded("hidden", (32, 12, 3, 2)))
    whole = np.asarray(block(x, None) - x)
    added = np.asarray(block(x, lx.random.key(1)) - x)
    kept = np.abs(added).max((1, 2, 3)) > 0
    assert 8 <= kept.sum() <= 24
    assert_close(added[kept], 2 * whole[kept], 1e-5)


def test_without_a_drop_rate_a_key_changes_nothing() -> None:
    model = model_of("without")
    assert np.array_equal(np.asarray(model(IMAGES, key=lx.random.key(0))), np.asarray(model(IMAGES)))


def test_layer_scale_starts_as_configured() -> None:
    model = ConvNext(config_of("with layer scale"), key=lx.random.key(0))
    assert np.array_equal(np.asarray(model.stages[0].blocks[0].scale), np.full(8, 1e-6, np.float32))


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"ConvNext: hidden_sizes and depths have an entry for each stage"):
        ConvNext(config_of("without", depths=[1]), key=lx.random.key(0))
    with pytest.raises(ValueError, match=r"config\.json: no activation 'gilu'"):
        ConvNext(config_of("without", hidden_act="gilu"), key=lx.random.key(0))
    model = model_of("without")
    with pytest.raises(lx.ShapeError, match=r"ConvNext: images are \[N, 3, H, W\], got f32\[3,24,20\]"):
        model(IMAGES[0])
    with pytest.raises(lx.ShapeError, match=r"ConvNext: images have at least 8 x 8 pixels, got f32\[3,3,24,7\]"):
        model(IMAGES[..., :7])
    assert np.all(np.isfinite(np.asarray(model(IMAGES[..., :8, :8]))))
