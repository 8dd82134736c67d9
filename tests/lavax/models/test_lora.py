"""Adapters of low rank: their start, gradients, merging, peft's files; models of integers, whole and adapted."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lavax as lx
from lavax import io, models
from lavax.generate import generate
from lavax.models import lora
from lavax.models.family import family_of
from lavax.models.llama_config import LlamaConfig
from tests.lavax.models.language import next_token_loss, token_ids
from tests.lavax.models.seeded import assert_close, seeded, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

CONFIG = LlamaConfig(
    vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
)
IDS = token_ids(96, 2, 11)


@pytest.fixture
def model() -> Any:
    return seeded_model(family_of("llama"), CONFIG)


def filled(model: Any, **settings: Any) -> lora.Adapters:
    """Adapters that change something."""
    made = lora.init(model, 4, key=lx.random.key(0), **settings)
    layers = {
        path: adapter.replace(up=0.1 * seeded(path, adapter.up.shape)) for path, adapter in made.layers.items()
    }
    return made.replace(layers=layers)


def test_adapters_start_as_nothing_and_only_they_have_gradients(model: Any) -> None:
    adapters = lora.init(model, 4, key=lx.random.key(0), alpha=8)
    assert sorted(adapters.layers)[:2] == ["layers.0.attention.key", "layers.0.attention.output"]
    assert len(adapters.layers) == 8 and adapters.scale == 2
    assert adapters.layers["layers.1.attention.key"].down.shape == (4, 32)
    assert adapters.layers["layers.1.attention.key"].up.shape == (16, 4)
    assert_close(lora.apply(model, adapters)(IDS), model(IDS), 1e-6)
    gradients = lx.grad(lambda a: next_token_loss(lora.apply(model, a), IDS))(adapters)
    assert lx.tree.structure(gradients) == lx.tree.structure(adapters)
    assert all(np.abs(np.asarray(each.up)).max() > 0 for each in gradients.layers.values())


def test_gradients_are_those_of_the_merged_weights(model: Any) -> None:
    """By the chain rule: dW·downᵀ and upᵀ·dW, times the scale."""
    adapters = filled(model, targets=("attention.query", "feed_forward.down"), alpha=2.0)
    gradients = lx.grad(lambda a: next_token_loss(lora.apply(model, a), IDS))(adapters)
    whole = lx.grad(next_token_loss)(lora.merge(model, adapters), IDS)
    for number in range(2):
        slope = np.asarray(whole.layers[number].feed_forward.down.weight).astype(np.float64)
        path = f"layers.{number}.feed_forward.down"
        adapter, found = adapters.layers[path], gradients.layers[path]
        assert_close(found.up, adapters.scale * slope @ np.asarray(adapter.down).T, 1e-4, path)
        assert_close(found.down, adapters.scale * np.asarray(adapter.up).T @ slope, 1e-4, path)


def test_merging_gives_the_same_model(model: Any) -> None:
    adapters = filled(model, alpha=8)
    merged = lora.merge(model, adapters)
    assert_close(merged(IDS), lora.apply(model, adapters)(IDS), 1e-5)
    assert np.abs(np.asarray(merged(IDS)) - np.asarray(model(IDS))).max() > 1e-2
    assert lx.tree.structure(merged) == lx.tree.structure(model)


def test_files_are_those_of_peft(model: Any, tmp_path: Path) -> None:
    adapters = filled(model, alpha=8)
    lora.save(tmp_path, model, adapters)
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    name = "base_model.model.model.layers.1.self_attn.q_proj"
    assert tensors[f"{name}.lora_A.weight"].shape == (4, 32) and tensors[f"{name}.lora_B.weight"].shape == (32, 4)
    settings = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (settings["peft_type"], settings["r"], settings["lora_alpha"]) == ("LORA", 4, 8)
    assert "model.layers.0.self_attn.v_proj" in settings["target_modules"]
    again = lora.load(tmp_path, model)
    assert np.array_equal(lora.apply(model, again)(IDS), lora.apply(model, adapters)(IDS))
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings | {"use_rslora": True}))
    assert lora.load(tmp_path, model).scale == 4
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings | {"use_dora": True}))
    with pytest.raises(ValueError, match="plain LoRA without biases, not LORA, use_dora"):
        lora.load(tmp_path, model)
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings))
    save_file({each.replace("q_proj", "x_proj"): array for each, array in tensors.items()},
              tmp_path / "adapter_model.safetensors")
    with pytest.raises(ValueError, match=r"Llama has no layer model\.layers\.\d\.self_attn\.x_proj"):
        lora.load(tmp_path, model)


def test_bad_arguments_are_named(model: Any) -> None:
    message = r"no layer of Llama ends in attention\.querry; its linear layers are layers\.0"
    with pytest.raises(ValueError, match=message):
        lora.init(model, 4, key=lx.random.key(0), targets="attention.querry")
    with pytest.raises(ValueError, match="rank must be at least 1, got 0"):
        lora.init(model, 0, key=lx.random.key(0))
    adapters = filled(model)
    with pytest.raises(ValueError, match=r"Llama has no linear layer layers\.7\.attention\.key"):
        lora.apply(model, adapters.replace(layers={"layers.7.attention.key": next(iter(adapters.layers.values()))}))
    with pytest.raises(TypeError, match=r"lora.merge: .* is a QuantizedLinear"):
        lora.merge(models.quantize(model), adapters)


@pytest.mark.parametrize(("kind", "error"), [("int8", 0.03), ("int4", 0.4)])
def test_a_folder_is_loaded_as_integers(kind: str, error: float, model: Any, tmp_path: Path) -> None:
    io.save_pretrained(model, tmp_path)
    rounded = models.load(tmp_path, quantize=kind, group=32)
    # The exact claim: the model computes with the rounded weights.
    whole = models.dequantize(rounded)
    assert_close(rounded(IDS), whole(IDS), 2e-5)
    assert lx.tree.structure(whole) == lx.tree.structure(model)
    assert_close(rounded(IDS), model(IDS), error)
    assert generate(rounded, IDS, 4).shape == (2, 15)
    io.save_pretrained(whole, tmp_path / "again")
    assert np.array_equal(models.load(tmp_path / "again")(IDS), whole(IDS))
    with pytest.raises(ValueError, match=r"Llama: .* are integers; `models.dequantize` makes them floats"):
        io.save_pretrained(rounded, tmp_path / "integers")


def test_adapters_learn_beside_integers(model: Any) -> None:
    rounded = models.quantize(model, "int4", 32)
    adapters = filled(rounded)
    gradients = lx.grad(lambda a: next_token_loss(lora.apply(rounded, a), IDS))(adapters)
    wanted = lx.grad(lambda a: next_token_loss(lora.apply(models.dequantize(rounded), a), IDS))(adapters)
    for path, each in gradients.layers.items():
        assert_close(each.up, wanted.layers[path].up, 1e-4, path)
