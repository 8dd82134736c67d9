"""BERT, RoBERTa and DistilBERT against transformers: hidden states, gradients, files."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lavax as lx
import lavax.numpy as lnp
from lavax import io, models
from lavax.models.encoders import BertConfig, Encoder
from lavax.models.family import Family, family_of
from tests.lavax.models.language import token_ids, torch_checkpoint
from tests.lavax.models.seeded import assert_close, assert_gradients_close, gradients_by_name, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

_SIZES: dict[str, Any] = dict(
    vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48
)
BERT: dict[str, Any] = dict(_SIZES, model_type="bert", max_position_embeddings=16)
ROBERTA: dict[str, Any] = dict(
    _SIZES, model_type="roberta", max_position_embeddings=16, pad_token_id=1, type_vocab_size=1, hidden_act="gelu_new"
)
DISTILBERT: dict[str, Any] = dict(
    model_type="distilbert", vocab_size=96, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=16
)
CLASSES = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert"}
ALL = [BERT, ROBERTA, DISTILBERT]
NAMES = [settings["model_type"] for settings in ALL]

LENGTHS = np.array([9, 6])
MASK = np.arange(9) < LENGTHS[:, None]
IDS = np.where(MASK, token_ids(94, 2, 9) + 2, 1)  # 1 is RoBERTa's padding
TYPES = np.where(np.arange(9) < 4, 0, MASK.astype(int))
WEIGHTS = np.random.default_rng(1).standard_normal((2, 9, 32)).astype(np.float32)


def arguments(settings: dict[str, Any]) -> tuple[np.ndarray, ...]:
    return (IDS, MASK, TYPES) if settings is BERT else (IDS, MASK)


def loss(model: Encoder, given: tuple[np.ndarray, ...]) -> Any:
    hidden = model(*given)
    made = lnp.sum(hidden * (WEIGHTS * MASK[..., None]))
    return made if model.pooler is None else made + lnp.sum(model.pooled(hidden) * WEIGHTS[:, 0])


def checkpoint(settings: dict[str, Any], folder: Path, kind: str = "Model") -> Any:
    name = CLASSES[settings["model_type"]]
    given = {key: value for key, value in settings.items() if key != "model_type"}
    return torch_checkpoint(f"{name}{kind}", dict(given, config=f"{name}Config"), folder)


def oracle_loss(oracle: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
    """Hidden states and the loss of a model of transformers."""
    import torch

    ids, mask, *types = map(torch.from_numpy, arguments(settings))
    more = {"token_type_ids": types[0]} if types else {}
    found = oracle(ids, attention_mask=mask.int(), **more)
    value = (found.last_hidden_state * torch.from_numpy(WEIGHTS * MASK[..., None])).sum()
    if "pooler_output" in found:
        value = value + (found.pooler_output * torch.from_numpy(WEIGHTS[:, 0])).sum()
    return found.last_hidden_state, value


def family(settings: dict[str, Any]) -> Family:
    return family_of(settings["model_type"])


@pytest.mark.parametrize("settings", ALL, ids=NAMES)
def test_hidden_states_and_gradients_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    oracle, model = checkpoint(settings, tmp_path), models.load(tmp_path)
    hidden, wanted = oracle_loss(oracle, settings)
    shown = MASK[..., None]
    assert_close(model(*arguments(settings)) * shown, hidden.detach().numpy() * shown, 1e-5)
    wanted.backward()
    value, gradients = lx.value_and_grad(loss)(model, arguments(settings))
    assert float(value) == pytest.approx(float(wanted.detach()), rel=1e-4)
    assert_gradients_close(gradients_by_name(family(settings), gradients), oracle)


@pytest.mark.parametrize("settings", ALL, ids=NAMES)
def test_a_saved_model_is_read_by_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    oracle = checkpoint(settings, tmp_path / "theirs")
    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    read, report = type(oracle).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert all(np.array_equal(value, oracle.state_dict()[name]) for name, value in read.state_dict().items())


@pytest.mark.parametrize("settings", ALL, ids=NAMES)
def test_an_encoder_inside_a_model_for_a_task_is_read(settings: dict[str, Any], tmp_path: Path) -> None:
    oracle = checkpoint(settings, tmp_path, "ForMaskedLM")
    model = models.load(tmp_path).encoder
    assert model.pooler is None
    import torch

    inner = getattr(oracle, settings["model_type"])
    wanted = inner(torch.from_numpy(IDS)).last_hidden_state
    assert_close(model(IDS), wanted.detach().numpy(), 1e-5)


def test_the_first_published_names_are_read(tmp_path: Path) -> None:
    """The published "bert-base-uncased" has a prefix, other names of scale and offset, and layers for its tasks."""
    model = seeded_model(family(BERT), BertConfig(**BERT))
    io.save_pretrained(model, tmp_path)
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {}
    for name, array in load_file(tmp_path / "model.safetensors").items():
        for today, before in older.items():
            name = name.replace(today, before)
        tensors[f"bert.{name}"] = array
    save_file(tensors | {"cls.predictions.bias": np.zeros(96)}, tmp_path / "model.safetensors")
    assert np.array_equal(models.load(tmp_path)(IDS), model(IDS))


@pytest.mark.parametrize("settings", ALL, ids=NAMES)
def test_padding_changes_nothing(settings: dict[str, Any]) -> None:
    made = family(settings)
    model = seeded_model(made, made.config(**settings))
    by_mask, by_lengths, alone = model(IDS, MASK), model(IDS, LENGTHS), model(IDS[1:, :6])
    assert np.array_equal(by_mask, by_lengths)
    assert_close(by_mask[1:, :6], alone, 1e-5)


# Of transformers 5.23.0 and torch 2.13.0: hidden states of the second row's last token, the loss, and sums of squares
# of gradients.
RECORDED: dict[str, dict[str, Any]] = {
    "bert": {
        "hidden": [-0.245359, -0.039668, 1.807164, 1.095242],
        "loss": -14.19934,
        "squares": {
            "embeddings.token_type_embeddings.weight": 9422.359,
            "encoder.layer.0.attention.self.query.weight": 1928.525,
            "pooler.dense.bias": 22.84425,
        },
    },
    "roberta": {
        "hidden": [0.601185, -0.599559, 0.223776, 1.812667],
        "loss": -8.918176,
        "squares": {
            "embeddings.position_embeddings.weight": 5875.625,
            "encoder.layer.1.output.LayerNorm.weight": 244.6985,
            "encoder.layer.0.attention.self.value.bias": 344.8053,
        },
    },
    "distilbert": {
        "hidden": [1.219472, 0.177391, 0.41691, 0.385233],
        "loss": -7.212584,
        "squares": {
            "embeddings.word_embeddings.weight": 8317.465,
            "transformer.layer.0.ffn.lin1.weight": 3821.615,
            "transformer.layer.1.attention.k_lin.weight": 1636.938,
        },
    },
}


@pytest.mark.parametrize("settings", ALL, ids=NAMES)
def test_recorded_values(settings: dict[str, Any]) -> None:
    made, recorded = family(settings), RECORDED[settings["model_type"]]
    model = seeded_model(made, made.config(**settings))
    assert_close(model(*arguments(settings))[1, 5, :4], recorded["hidden"], 1e-4)
    value, gradients = lx.value_and_grad(loss)(model, arguments(settings))
    assert float(value) == pytest.approx(recorded["loss"], rel=1e-4)
    found = gradients_by_name(made, gradients)
    for name, squares in recorded["squares"].items():
        assert float(np.sum(np.square(found[name]))) == pytest.approx(squares, rel=2e-3), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is true"),
        ({"num_attention_heads": 5}, "num_attention_heads=5 must divide hidden_size=32"),
        ({"hidden_act": "gilu"}, "no activation 'gilu'"),
    ],
)
def test_settings_that_the_model_does_not_have_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Encoder(BertConfig(**BERT | change), key=lx.random.key(0))


def test_bad_arguments_are_named() -> None:
    model = seeded_model(family(BERT), BertConfig(**BERT | {"add_pooling_layer": False}))
    with pytest.raises(lx.ShapeError, match=r"ids are \[B, T\] with T up to 16"):
        model(np.zeros((1, 17), int))
    with pytest.raises(lx.ShapeError, match=r"mask: it must be \[2, 9\], or integer lengths \[2\]"):
        model(IDS, MASK[:, :8])
    with pytest.raises(ValueError, match="no pooling layer"):
        model.pooled(model(IDS))
