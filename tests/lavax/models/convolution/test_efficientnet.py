"""EfficientNets: against transformers in inference and training, folded, saved, with dropout, and recorded values."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.models.convolution import EfficientNet, EfficientNetConfig, fold_batch_norm
from lavax.models.convolution.convolution_norm import RunningStatistics
from lavax.models.convolution.efficientnet import FAMILY
from tests.lavax.models.seeded import (
    assert_close,
    assert_gradients_close,
    gradients_by_name,
    seed_torch,
    seeded,
    seeded_model,
)

pytestmark = pytest.mark.usefixtures("reference_backend")

STATISTIC = re.compile(r"\.(running_mean|running_var|num_batches_tracked)$")
IMAGES = seeded("images", (3, 3, 24, 20))
SETTINGS: dict[str, Any] = dict(
    width_coefficient=1 / 16,  # 8, 8, 16, 24 channels
    in_channels=[32, 128, 256],
    out_channels=[128, 256, 384],
    kernel_sizes=[3, 5, 3],
    num_block_repeats=[1, 1, 1],
    expand_ratios=[1, 6, 4],
    hidden_dim=80,
)
KINDS: dict[str, dict[str, Any]] = {
    "mean": dict(strides=[1, 2, 2], depth_coefficient=1.1, squeeze_expansion_ratio=0.25),
    "max": dict(strides=[2, 2, 1], depth_coefficient=1.0, depthwise_padding=[1], pooling_type="max", hidden_act="relu"),
}


def config_of(kind: str, **settings: Any) -> EfficientNetConfig:
    labels = {str(number): f"LABEL_{number}" for number in range(5)}
    return EfficientNetConfig.from_json({**SETTINGS, **KINDS[kind], "id2label": labels, **settings})


def model_of(kind: str, **settings: Any) -> Any:
    return seeded_model(FAMILY, config_of(kind, **settings))


def training_loss(model: Any) -> tuple[Any, Any]:
    logits, statistics = model(IMAGES, training=True)
    return lnp.sum(lnp.sin(logits)), statistics


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def oracle(kind: str) -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is compared with where it is installed")
    pytest.importorskip("torch", reason="torch is compared with where it is installed")
    config = transformers.EfficientNetConfig(
        **SETTINGS, **KINDS[kind], num_labels=5, dropout_rate=0.0, drop_connect_rate=0.0
    )
    return seed_torch(transformers.EfficientNetForImageClassification(config).double())


def test_logits_gradients_and_statistics_are_those_of_transformers(kind: str, oracle: Any) -> None:
    import torch

    images, model = torch.from_numpy(np.array(IMAGES)).double(), model_of(kind)
    assert_close(model(IMAGES), oracle(images).logits.detach().numpy(), 1e-5)
    loss = oracle.train()(images).logits.sin().sum()
    loss.backward()
    (found, statistics), gradients = lx.value_and_grad(training_loss, has_aux=True)(model)
    assert_close(found, loss.item(), 1e-5)
    by_name = gradients_by_name(FAMILY, gradients)
    assert all(not np.any(array) for name, array in by_name.items() if STATISTIC.search(name))
    assert_gradients_close({name: array for name, array in by_name.items() if not STATISTIC.search(name)}, oracle)
    _, after = model.replace(statistics=statistics).to_pretrained()
    for name, tensor in oracle.state_dict().items():
        if "running" in name:
            assert_close(after[name], tensor.numpy(), 1e-5, name)


def test_gradients_of_inference_are_those_of_transformers(kind: str, oracle: Any) -> None:
    """With the running statistics, as one fine-tunes a model whose statistics stay."""
    import torch

    oracle(torch.from_numpy(np.array(IMAGES)).double()).logits.sin().sum().backward()
    gradients = lx.grad(lambda model: lnp.sum(lnp.sin(model(IMAGES))))(model_of(kind))
    by_name = gradients_by_name(FAMILY, gradients)
    assert_gradients_close({name: array for name, array in by_name.items() if not STATISTIC.search(name)}, oracle)


def test_a_folder_of_transformers_is_read_and_written(kind: str, oracle: Any, tmp_path: Path) -> None:
    import torch
    import transformers

    oracle.float().save_pretrained(tmp_path / "theirs")
    model = lx.models.load(tmp_path / "theirs")
    images = torch.from_numpy(np.array(IMAGES))
    assert_close(model(IMAGES), oracle(images).logits.detach().numpy(), 1e-5)
    lx.io.save_pretrained(model, tmp_path / "ours")
    again, report = transformers.EfficientNetForImageClassification.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert all(torch.equal(value, oracle.state_dict()[name]) for name, value in again.state_dict().items())


# By transformers 5.23 and torch 2.13 in float64, from the weights and images above: logits of the first image with the
# running statistics; with those of the batch the loss, and sums of squares of gradients and of a statistic after it.
RECORDED: dict[str, dict[str, Any]] = {
    "mean": {
        "logits": [0.47376322, 0.23102917, -0.13820853, 0.05364435, -0.25725023],
        "loss": 1.2681965,
        "squares": {
            "efficientnet.embeddings.convolution.weight": 3.1761337,
            "efficientnet.encoder.blocks.2.expansion.expand_conv.weight": 1.0942632,
            "efficientnet.encoder.blocks.3.squeeze_excite.reduce.weight": 0.0020378954,
            "efficientnet.encoder.blocks.5.projection.project_bn.weight": 0.0064486996,
        },
        "statistics": {
            "efficientnet.encoder.blocks.2.expansion.expand_bn.running_mean": 0.3451001,
            "efficientnet.encoder.top_bn.running_var": 397.06465,
        },
    },
    "max": {
        "logits": [-0.05929008, -0.00506595, -0.29486962, 0.31991909, 0.03344664],
        "loss": -0.70271743,
        "squares": {
            "efficientnet.embeddings.batchnorm.weight": 0.43218703,
            "efficientnet.encoder.blocks.0.depthwise_conv.depthwise_conv.weight": 296.03693,
            "efficientnet.encoder.blocks.1.squeeze_excite.expand.bias": 2.9909149,
            "efficientnet.encoder.top_conv.weight": 199.13963,
        },
        "statistics": {
            "efficientnet.encoder.blocks.1.expansion.expand_bn.running_var": 18.687353,
            "efficientnet.encoder.blocks.1.depthwise_conv.depthwise_norm.running_mean": 3.2947756,
        },
    },
}


def test_recorded_values(kind: str) -> None:
    model, recorded = model_of(kind), RECORDED[kind]
    assert_close(model(IMAGES)[0], recorded["logits"], 1e-5)
    (found, statistics), gradients = lx.value_and_grad(training_loss, has_aux=True)(model)
    assert float(found) == pytest.approx(recorded["loss"], rel=1e-5)
    _, after = model.replace(statistics=statistics).to_pretrained()
    for entry, arrays in (("squares", gradients_by_name(FAMILY, gradients)), ("statistics", after)):
        for name, squares in recorded[entry].items():
            assert float(np.sum(np.square(arrays[name]))) == pytest.approx(squares, rel=1e-4), name


def test_folded_batch_norm_gives_the_same_logits(kind: str, tmp_path: Path) -> None:
    model = model_of(kind)
    folded = fold_batch_norm(model)
    assert folded.statistics == {} and folded.stem.norm is None and folded.blocks[-1].expansion.norm is None
    assert_close(folded(IMAGES), model(IMAGES), 1e-5)
    with pytest.raises(ValueError, match="this model's batch norms are folded; save it before `fold_batch_norm`"):
        lx.io.save_pretrained(folded, tmp_path)


# Tan and Le (2019), table 2: blocks, channels of the last, and millions of weights without the statistics.
PUBLISHED = {
    "B0": (dict(width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280), 16, 320, 5.29),
    "B3": (dict(width_coefficient=1.2, depth_coefficient=1.4, hidden_dim=1536), 26, 384, 12.23),
    "B7": ({}, 55, 640, 66.35),
}


@pytest.mark.parametrize(("settings", "count", "channels", "millions"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_sizes(settings: dict[str, Any], count: int, channels: int, millions: float) -> None:
    config = EfficientNetConfig(**settings, num_labels=1000)
    blocks = list(config.blocks())
    assert (len(blocks), blocks[-1].out_channels) == (count, channels)
    form = lx.eval_shape(lambda: EfficientNet(config, key=lx.random.key(0))).replace(statistics={})
    weights = sum(np.prod(leaf.shape) for leaf in lx.tree.leaves(form))
    assert weights / 1e6 == pytest.approx(millions, abs=0.005)


def test_stochastic_depth_drops_blocks_of_whole_images() -> None:
    model = model_of("mean", drop_connect_rate=0.9)
    rates = [block.drop_rate for block in model.blocks]
    assert rates == pytest.approx([0, 0.15, 0.3, 0.45, 0.6, 0.75])
    assert [block.adds_input for block in model.blocks] == [False, True] * 3
    block, x = model.blocks[3], lnp.asarray(seeded("hidden", (32, 16, 3, 2)))

    def added(key: Any) -> np.ndarray:
        return np.asarray(block("blocks.3", x, RunningStatistics(model.statistics, False), key) - x)

    whole, some = added(None), added(lx.random.key(1))
    kept = np.abs(some).max((1, 2, 3)) > 0
    assert 8 <= kept.sum() <= 26
    assert_close(some[kept], whole[kept] / 0.55, 1e-5)


def test_dropout_needs_a_key_and_has_the_mean_of_inference() -> None:
    model = model_of("mean", drop_connect_rate=0.0, dropout_rate=0.5)
    plain = np.asarray(model(IMAGES))
    assert np.array_equal(plain, np.asarray(model(IMAGES, training=False, key=None)))
    draws = np.array([np.asarray(model(IMAGES, key=key)) for key in lx.random.split(lx.random.key(0), 64)])
    error = draws.std(0) / 8
    assert np.all(error > 0)
    assert np.all(np.abs(draws.mean(0) - plain) < 5 * error)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strides": [1, 2]}, "in_channels, out_channels, .* have an entry for each stage, and so one length"),
        ({"in_channels": [32, 256, 256]}, r"in_channels\[1\] is 128, which come from before, got 256"),
        ({"kernel_sizes": [3, 4, 3]}, r"kernel_sizes are odd and strides 1 or 2, got \(3, 4, 3\) and \(1, 2, 2\)"),
        ({"strides": [1, 3, 2]}, r"kernel_sizes are odd and strides 1 or 2, got \(3, 5, 3\) and \(1, 3, 2\)"),
        ({"hidden_dim": 1280}, "hidden_dim is 80 at width_coefficient=0.0625, got 1280"),
        ({"pooling_type": "sum"}, "pooling_type is 'mean' or 'max', got 'sum'"),
        ({"hidden_act": "gilu"}, "no activation 'gilu'"),
    ],
)
def test_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EfficientNet(config_of("mean", **change), key=lx.random.key(0))


def test_bad_images_are_named() -> None:
    with pytest.raises(lx.ShapeError, match=r"EfficientNet: images are \[N, 3, H, W\], got f32\[3,24,20\]"):
        model_of("mean")(IMAGES[0])
    with pytest.raises(lx.ShapeError, match=r"EfficientNet: images have at least 8 x 8 pixels, got f32\[3,3,24,7\]"):
        model_of("mean")(IMAGES[..., :7])
    for kind, least in (("mean", 8), ("max", 4)):
        smallest = np.asarray(model_of(kind)(IMAGES[..., :least, :least]))
        assert model_of(kind).config.least_pixels == (least, least) and np.all(np.isfinite(smallest))
