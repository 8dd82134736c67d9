"""ResNets: against transformers in inference and training, folded, saved, and against recorded values."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.models.convolution.convolution_norm import fold_batch_norm
from lavax.models.convolution.resnet import FAMILY, ResNet, ResNetConfig
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
KINDS = {"bottleneck": (16, 32), "basic": (8, 16)}


def config_of(kind: str) -> ResNetConfig:
    labels = {str(number): f"LABEL_{number}" for number in range(5)}
    data = dict(embedding_size=8, hidden_sizes=KINDS[kind], depths=(2, 2), layer_type=kind, id2label=labels)
    return ResNetConfig.from_json(data)


def model_of(kind: str) -> Any:
    return seeded_model(FAMILY, config_of(kind))


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
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=list(KINDS[kind]), depths=[2, 2], layer_type=kind, num_labels=5
    )
    return seed_torch(transformers.ResNetForImageClassification(config).double())


def test_logits_gradients_and_statistics_are_those_of_transformers(kind: str, oracle: Any) -> None:
    import torch

    images, model = torch.from_numpy(np.array(IMAGES)).double(), model_of(kind)
    assert_close(model(IMAGES), oracle.eval()(images).logits.detach().numpy(), 1e-5)
    loss = oracle.train()(images).logits.sin().sum()
    loss.backward()
    (found, statistics), gradients = lx.value_and_grad(training_loss, has_aux=True)(model)
    assert_close(found, loss.item(), 1e-5)
    by_name = gradients_by_name(FAMILY, gradients)
    assert all(not np.any(array) for name, array in by_name.items() if STATISTIC.search(name))
    weights = {name: array for name, array in by_name.items() if not STATISTIC.search(name)}
    assert_gradients_close(weights, oracle)
    _, after = model.replace(statistics=statistics).to_pretrained()
    for name, tensor in oracle.state_dict().items():
        if "running" in name:
            assert_close(after[name], tensor.numpy(), 1e-5, name)


def test_a_folder_of_transformers_is_read_and_written(kind: str, oracle: Any, tmp_path: Path) -> None:
    import torch
    import transformers

    oracle.float().eval().save_pretrained(tmp_path / "theirs")
    model = lx.models.load(tmp_path / "theirs")
    images = torch.from_numpy(np.array(IMAGES))
    assert_close(model(IMAGES), oracle(images).logits.detach().numpy(), 1e-5)
    lx.io.save_pretrained(model, tmp_path / "ours")
    again, report = transformers.ResNetForImageClassification.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert all(torch.equal(value, oracle.state_dict()[name]) for name, value in again.state_dict().items())


def test_another_activation_is_that_of_transformers(kind: str, tmp_path: Path) -> None:
    """Between blocks; within them, it is relu."""
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    torch = pytest.importorskip("torch", reason="compares with transformers")
    settings: Any = dict(embedding_size=8, hidden_sizes=list(KINDS[kind]), depths=[2, 2], layer_type=kind)
    config = transformers.ResNetConfig(**settings, num_labels=5, hidden_act="gelu")
    theirs = seed_torch(transformers.ResNetForImageClassification(config)).eval()
    theirs.save_pretrained(tmp_path)
    wanted = theirs(torch.from_numpy(np.array(IMAGES))).logits.detach().numpy()
    assert_close(lx.models.load(tmp_path)(IMAGES), wanted, 1e-5)


# By transformers 5.23 and torch 2.13 in float64, from the weights and images above.
RECORDED = {
    "bottleneck": [-0.75226573, 1.21512821, 0.22799506, 0.261957, 1.41567386],
    "basic": [-0.32456834, -0.19653148, 0.08172592, 0.07316892, 0.02076031],
}


def test_logits_are_the_recorded_ones(kind: str) -> None:
    assert_close(model_of(kind)(IMAGES)[0], np.array(RECORDED[kind]), 1e-5)


def test_folded_batch_norm_gives_the_same_logits(kind: str, tmp_path: Path) -> None:
    model = model_of(kind)
    folded = fold_batch_norm(model)
    assert folded.statistics == {} and folded.stem.norm is None
    assert len(lx.tree.leaves(folded)) < len(lx.tree.leaves(model))
    assert_close(folded(IMAGES), model(IMAGES), 1e-5)
    with pytest.raises(ValueError, match="this model's batch norms are folded; save it before `fold_batch_norm`"):
        lx.io.save_pretrained(folded, tmp_path)


def test_labels_are_counted_with_and_without_names() -> None:
    assert ResNetConfig().classes == 2
    assert ResNetConfig(num_labels=7).classes == 7
    assert config_of("basic").classes == 5


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="layer_type is 'bottleneck' or 'basic', got 'wide'"):
        ResNet(ResNetConfig(layer_type="wide"), key=lx.random.key(0))
    with pytest.raises(lx.ShapeError, match=r"ResNet: images are \[N, 3, H, W\], got f32\[3,24,20\]"):
        model_of("basic")(IMAGES[0])
