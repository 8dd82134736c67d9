"""Models in GGUF files: the same logits as from the folder that the file was made of."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax import models
from lavax.models.family import family_of
from lavax.models.llama import Llama
from lavax.models.llama_config import LlamaConfig
from lavax.nn import rotary
from tests.lavax.models.language import token_ids
from tests.lavax.models.seeded import assert_close, seeded_model

gguf = pytest.importorskip("gguf", reason="the format's package is an extra")
pytestmark = pytest.mark.usefixtures("reference_backend")

SIZES: dict[str, Any] = dict(
    vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64, rope_theta=500.0, rms_norm_eps=1e-5,
)  # fmt: skip
MEMBERS: dict[str, dict[str, Any]] = {
    "llama": dict(SIZES, model_type="llama", tie_word_embeddings=True),
    "llama with heads of its own": dict(SIZES, model_type="llama", tie_word_embeddings=False),
    "qwen2": dict(SIZES, model_type="qwen2", tie_word_embeddings=False),
    "qwen3": dict(SIZES, model_type="qwen3", head_dim=32, tie_word_embeddings=True),
    "gemma": dict(SIZES, model_type="gemma", head_dim=32),
    "gemma2": dict(
        SIZES, model_type="gemma2", head_dim=32, query_pre_attn_scalar=32, sliding_window=4,
        attn_logit_softcapping=3.0, final_logit_softcapping=5.0,
    ),
    "gemma3": dict(
        SIZES, model_type="gemma3_text", head_dim=32, query_pre_attn_scalar=32, sliding_window=4, num_hidden_layers=6,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    ),
}
IDS = token_ids(96, 2, 9)


def model_of(settings: dict[str, Any]) -> Llama:
    config = LlamaConfig.from_json(settings)
    made: Llama = seeded_model(family_of(config.model_type), config)
    return made


def write(path: Path, model: Llama, form: str = "F32", factors: Any = None, **metadata: Any) -> None:
    """The file that the converter of GGUF makes of the model's folder; matrices in `form`.

    `factors` say by how much each pair of rotary embeddings turns slower.
    """
    data, tensors = model.to_pretrained()
    kind = data["model_type"].removesuffix("_text")
    writer = gguf.GGUFWriter(path, kind)
    if kind in ("gemma2", "gemma3"):
        writer.add_sliding_window(data["sliding_window"])
    if kind == "gemma2":
        writer.add_attn_logit_softcapping(data["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(data["final_logit_softcapping"])
    if data.get("rope_scaling") and kind == "gemma3":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(data["rope_scaling"]["factor"])
    writer.add_vocab_size(data["vocab_size"])
    writer.add_embedding_length(data["hidden_size"])
    writer.add_feed_forward_length(data["intermediate_size"])
    writer.add_block_count(data["num_hidden_layers"])
    writer.add_head_count(data["num_attention_heads"])
    writer.add_head_count_kv(data["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(data["rms_norm_eps"])
    writer.add_context_length(data["max_position_embeddings"])
    writer.add_rope_freq_base(data["rope_theta"])
    if "head_dim" in data:
        writer.add_key_length(data["head_dim"])
    writer.add_eos_token_id(2)
    for name, value in metadata.items():
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32}[type(value)]
        add(name.replace("__", "."), value)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", np.asarray(factors, np.float32))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[kind.upper()], data["num_hidden_layers"])
    heads = {"q_proj": data["num_attention_heads"], "k_proj": data["num_key_value_heads"]}
    for name, array in tensors.items():
        layer = name.split(".")[-2]
        if kind == "llama" and layer in heads:
            array = np.swapaxes(array.reshape(heads[layer], 2, -1, *array.shape[1:]), 1, 2).reshape(array.shape)
        if kind.startswith("gemma") and name.endswith("norm.weight"):
            array = array + 1
        stored = gguf.GGMLQuantizationType[form if array.ndim == 2 else "F32"]
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(found, gguf.quants.quantize(np.ascontiguousarray(array), stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("name", MEMBERS)
def test_logits_are_those_of_the_folder(name: str, tmp_path: Path) -> None:
    model = model_of(MEMBERS[name])
    write(tmp_path / "a.gguf", model)
    found = models.load(tmp_path / "a.gguf")
    assert_close(found(IDS), model(IDS), 1e-6)
    assert found.config.to_json()["eos_token_id"] == 2


# A class of transformers -> the settings that it reads of a file; of Gemma's, it leaves some at their defaults.
READ_BY_TRANSFORMERS: dict[str, dict[str, Any]] = {
    "Llama": MEMBERS["llama with heads of its own"],
    "Gemma2": dict(MEMBERS["gemma2"], attn_logit_softcapping=50.0, final_logit_softcapping=30.0),
    "Gemma3": dict(MEMBERS["gemma3"], rope_scaling=None),
}


@pytest.mark.parametrize("kind", READ_BY_TRANSFORMERS)
def test_transformers_reads_the_file_alike(kind: str, tmp_path: Path) -> None:
    """So the order of rows and the offsets of norms are the converter's, not only the inverses of this test's."""
    torch = pytest.importorskip("torch", reason="compares with transformers")
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    write(tmp_path / "a.gguf", model_of(READ_BY_TRANSFORMERS[kind]))
    theirs = getattr(transformers, f"{kind}ForCausalLM").from_pretrained(
        tmp_path, gguf_file="a.gguf", dtype=torch.float32, attn_implementation="eager"
    )
    for layer in theirs.eval().model.layers:
        layer.self_attn.scaling = layer.self_attn.head_dim**-0.5
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(IDS)).logits.numpy()
    assert_close(models.load(tmp_path / "a.gguf")(IDS), wanted, 1e-5)


LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip


def test_the_scaling_of_llama_3_is_a_tensor(tmp_path: Path) -> None:
    settings = dict(SIZES, model_type="llama", tie_word_embeddings=True)
    model = model_of(dict(settings, rope_parameters=LLAMA_3))
    factors = rotary.frequencies(16, 500.0).radians / model.config.frequencies_of(None).radians
    assert factors.max() == pytest.approx(8) and factors.min() < 2
    write(tmp_path / "a.gguf", model, factors=factors)
    assert_close(models.load(tmp_path / "a.gguf")(IDS), model(IDS), 1e-5)
    assert np.abs(np.asarray(model_of(settings)(IDS)) - np.asarray(model(IDS))).max() > 1e-2


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_scalings_are_in_the_metadata(kind: str, tmp_path: Path) -> None:
    scaling: dict[str, Any] = {"rope_type": kind, "factor": 4.0, "original_max_position_embeddings": 16}
    model = model_of(dict(SIZES, model_type="qwen2", tie_word_embeddings=True, rope_scaling=scaling))
    given: dict[str, Any] = {
        "qwen2__rope__scaling__type": kind,
        "qwen2__rope__scaling__factor": 4.0,
        "qwen2__rope__scaling__original_context_length": 16,
    }
    write(tmp_path / "a.gguf", model, **given)
    assert_close(models.load(tmp_path / "a.gguf")(IDS), model(IDS), 1e-6)


def test_quantised_weights_are_near(tmp_path: Path) -> None:
    model = model_of(MEMBERS["llama"])
    write(tmp_path / "a.gguf", model, "Q8_0")
    found = np.asarray(models.load(tmp_path / "a.gguf", dtype="float32")(IDS))
    wanted = np.asarray(model(IDS))
    assert 0 < np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()


def test_what_is_not_read_is_refused_by_name(tmp_path: Path) -> None:
    model = model_of(MEMBERS["llama"])
    write(tmp_path / "a.gguf", model, llama__rope__scaling__type="longrope")
    with pytest.raises(ValueError, match=r"rotary embeddings are scaled \(longrope\); read are linear, yarn"):
        models.load(tmp_path / "a.gguf")
    writer = gguf.GGUFWriter(tmp_path / "b.gguf", "starcoder")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match=r"b\.gguf: no architecture 'starcoder' is read; there are llama"):
        models.load(tmp_path / "b.gguf")
