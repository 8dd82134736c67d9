"""The Llama family against transformers: logits, gradients, files, caches."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import io, models
from lavax.models.family import family_of
from lavax.models.llama import Llama
from lavax.models.llama_config import LlamaConfig
from tests.lavax.models.language import (
    check_against_transformers,
    check_cached,
    check_generation,
    check_recorded,
    check_saved_again,
    token_ids,
    torch_checkpoint,
)
from tests.lavax.models.seeded import assert_close, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(
    vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64,
)
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONG = {
    "rope_type": "longrope", "rope_theta": 100.0, "partial_rotary_factor": 1.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [1.0, 2.0, 3.0, 4.0],
}
GEMMA = dict(SMALL, head_dim=16)
LOCAL_AND_GLOBAL = ["sliding_attention", "full_attention"]
GEMMA3_ROTATION = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000.0},
}
# A name -> the settings of a member of the family, as config.json has them.
MEMBERS: dict[str, dict[str, Any]] = {
    "smollm2": dict(SMALL, model_type="llama", tie_word_embeddings=True, rope_theta=100.0),
    "llama3": dict(SMALL, model_type="llama", tie_word_embeddings=False, rope_parameters=LLAMA3),
    "llama with biases": dict(SMALL, model_type="llama", attention_bias=True, mlp_bias=True, hidden_act="gelu"),
    "mistral": dict(SMALL, model_type="mistral", head_dim=16, sliding_window=4),
    "qwen2": dict(
        SMALL, model_type="qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=1,
        tie_word_embeddings=False,
    ),
    "qwen3": dict(SMALL, model_type="qwen3", head_dim=16, tie_word_embeddings=True),
    "phi3": dict(
        SMALL, model_type="phi3", sliding_window=5, tie_word_embeddings=False, original_max_position_embeddings=16,
        rope_parameters=LONG, pad_token_id=0,
    ),
    "gemma": dict(GEMMA, model_type="gemma"),
    "gemma2": dict(
        GEMMA, model_type="gemma2", sliding_window=4, query_pre_attn_scalar=24, attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0, layer_types=LOCAL_AND_GLOBAL,
    ),
    "gemma3": dict(
        GEMMA, model_type="gemma3_text", sliding_window=4, query_pre_attn_scalar=24, layer_types=LOCAL_AND_GLOBAL,
        rope_parameters=GEMMA3_ROTATION,
    ),
}
CLASSES = {
    "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma": "Gemma", "gemma2": "Gemma2",
    "gemma3_text": "Gemma3", "phi3": "Phi3",
}
IDS = token_ids(96, 2, 11)
every_member = pytest.mark.parametrize("settings", MEMBERS.values(), ids=MEMBERS.keys())


def checkpoint(settings: dict[str, Any], folder: Path) -> Any:
    kind = settings["model_type"]
    config = f"{CLASSES[kind]}TextConfig" if kind == "gemma3_text" else f"{CLASSES[kind]}Config"
    others = {name: value for name, value in settings.items() if name != "model_type"}
    return torch_checkpoint(f"{CLASSES[kind]}ForCausalLM", dict(others, config=config), folder)


def seeded_member(settings: dict[str, Any]) -> Llama:
    made = seeded_model(family_of(settings["model_type"]), LlamaConfig.from_json(settings))
    assert isinstance(made, Llama)
    return made


@every_member
def test_logits_and_gradients_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_against_transformers(checkpoint(settings, tmp_path), family_of(settings["model_type"]), tmp_path, IDS)


@pytest.mark.parametrize("trained", [8, 16])
def test_long_contexts_turn_by_their_length(trained: int, tmp_path: Path) -> None:
    """11 tokens are more than the model was trained for, or fewer."""
    settings = dict(MEMBERS["phi3"], original_max_position_embeddings=trained)
    check_against_transformers(checkpoint(settings, tmp_path), family_of("phi3"), tmp_path, IDS)


@every_member
def test_a_saved_model_is_read_by_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_saved_again(checkpoint(settings, tmp_path / "theirs"), tmp_path / "theirs", tmp_path / "ours", IDS)


@pytest.mark.parametrize("member", ["llama3", "mistral", "gemma2", "gemma3"])
def test_generation_is_that_of_transformers(member: str, tmp_path: Path) -> None:
    check_generation(checkpoint(MEMBERS[member], tmp_path), tmp_path, [IDS[0], IDS[1, :5]])


@every_member
def test_a_cached_decode_is_the_forward_pass(settings: dict[str, Any]) -> None:
    check_cached(seeded_member(settings), IDS)


# Scalings whose frequencies depend on the number of tokens; all are made for 8.
BY_LENGTH: dict[str, dict[str, Any]] = {
    "longrope": dict(MEMBERS["phi3"], original_max_position_embeddings=8),
    "dynamic": dict(
        SMALL, model_type="llama", max_position_embeddings=8,
        rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 100.0},
    ),
}  # fmt: skip
every_scaling_by_length = pytest.mark.parametrize("settings", BY_LENGTH.values(), ids=BY_LENGTH.keys())


@every_scaling_by_length
def test_keys_in_a_cache_turn_by_the_length_of_now(settings: dict[str, Any]) -> None:
    """With one layer, each token then gets what the whole text gives; in more, states of earlier tokens are kept."""
    model = seeded_member(dict(settings, num_hidden_layers=1))
    cache = model.empty_cache(2, 16)
    for place in range(11):
        hidden, cache = model.extend(IDS[:, place : place + 1], cache)
        assert_close(model.logits(hidden)[:, 0], model(IDS[:, : place + 1])[:, -1], 1e-5, str(place))


@every_scaling_by_length
def test_rows_do_not_depend_on_longer_ones(settings: dict[str, Any]) -> None:
    """Nor on padding: 4 tokens, and 10, in a row of 16."""
    model = seeded_member(settings)
    short, long = model.extend(IDS[:1, :4], model.empty_cache(1, 16))[0], model(IDS[1:, :10])
    padded = np.zeros((2, 16), int)
    padded[0, :4], padded[1, :10] = IDS[0, :4], IDS[1, :10]
    hidden, _ = model.extend(padded, model.empty_cache(2, 16), np.array([4, 10], np.int32))
    assert_close(hidden[0, :4], short[0], 1e-5)
    assert_close(model.logits(hidden)[1, :10], long[0], 1e-5)


def test_scalings_make_texts_longer() -> None:
    def longest(**settings: Any) -> int:
        return LlamaConfig.from_json(dict(SMALL, model_type="llama", **settings)).longest

    assert longest() == 64
    assert longest(rope_scaling={"type": "linear", "factor": 4.0}) == 256
    assert longest(rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}) == 256
    assert longest(rope_parameters=LLAMA3) == 128  # 8 times 16
    assert longest(rope_parameters=GEMMA3_ROTATION) == 64


# Of transformers 5.23.0 and torch 2.13.0.
RECORDED: dict[str, dict[str, Any]] = {
    "smollm2": {
        "logits": [-0.282458, 2.445878, 0.391746, 0.858136, 0.372677, 1.423099],
        "loss": 5.406896,
        "squares": {
            "model.embed_tokens.weight": 4.745924,
            "model.layers.0.self_attn.k_proj.weight": 0.4651154,
        },
    },
    "llama3": {
        "logits": [0.22607, -0.299558, 0.915612, -1.385405, -1.366361, 1.087928],
        "loss": 5.225369,
        "squares": {
            "model.layers.0.self_attn.q_proj.weight": 0.639232,
            "lm_head.weight": 1.630788,
        },
    },
    "mistral": {
        "logits": [0.979171, -0.349771, -0.168088, -1.137413, -0.653332, 0.28174],
        "loss": 5.323647,
        "squares": {
            "model.layers.0.self_attn.v_proj.weight": 4.317725,
        },
    },
    "qwen2": {
        "logits": [0.160016, 0.014352, 1.229427, -0.701923, -1.539403, 0.761267],
        "loss": 5.104625,
        "squares": {
            "model.layers.0.self_attn.q_proj.bias": 0.01630886,
            "model.layers.1.mlp.gate_proj.weight": 0.3722238,
        },
    },
    "qwen3": {
        "logits": [-0.581241, -0.370504, -0.130027, 1.763728, 1.185472, -0.455755],
        "loss": 4.873034,
        "squares": {
            "model.layers.0.self_attn.q_norm.weight": 0.1127111,
            "model.layers.1.self_attn.k_proj.weight": 0.2598422,
        },
    },
    "gemma": {
        "logits": [-1.009732, -1.446235, 0.214333, 4.122514, 3.521458, 1.033174],
        "loss": 6.441778,
        "squares": {
            "model.embed_tokens.weight": 303.3727,
            "model.norm.weight": 0.1474054,
        },
    },
    "gemma2": {
        "logits": [2.189792, -0.856019, -0.293582, -0.866481, 0.367128, -0.87928],
        "loss": 5.2235,
        "squares": {
            "model.layers.0.post_feedforward_layernorm.weight": 0.01204769,
            "model.layers.0.self_attn.k_proj.weight": 5.10055,
        },
    },
    "gemma3": {
        "logits": [3.614737, -1.756478, 1.668775, 0.922063, 0.419938, -1.135691],
        "loss": 6.143044,
        "squares": {
            "model.layers.1.self_attn.k_norm.weight": 0.01715427,
            "model.layers.0.self_attn.q_proj.weight": 27.0941,
        },
    },
}


@pytest.mark.parametrize("member", RECORDED)
def test_recorded_values(member: str) -> None:
    model = seeded_member(MEMBERS[member])
    check_recorded(model, family_of(model.config.model_type), IDS, RECORDED[member])


# Settings as the first files of a model had them, and as transformers writes them today.
OLDER_AND_NEWER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama3": (
        dict(SMALL, model_type="llama", rope_theta=500.0, rope_scaling=dict(LLAMA3, rope_theta=None)),
        dict(SMALL, model_type="llama", rope_parameters=LLAMA3),
    ),
    "gemma": (
        dict(GEMMA, model_type="gemma", hidden_act="gelu", rope_theta=10000.0),
        dict(GEMMA, model_type="gemma", hidden_act="gelu_pytorch_tanh"),
    ),
    "gemma2": (
        dict(GEMMA, model_type="gemma2", sliding_window=4),
        dict(GEMMA, model_type="gemma2", sliding_window=4, layer_types=LOCAL_AND_GLOBAL),
    ),
    "gemma3": (
        dict(GEMMA, model_type="gemma3_text", sliding_window=4, sliding_window_pattern=2, rope_theta=1000.0,
             rope_local_base_freq=100.0, rope_scaling={"rope_type": "linear", "factor": 8.0}),
        dict(GEMMA, model_type="gemma3_text", sliding_window=4, layer_types=LOCAL_AND_GLOBAL,
             rope_parameters=GEMMA3_ROTATION),
    ),
    "qwen2": (
        dict(SMALL, model_type="qwen2", sliding_window=4, use_sliding_window=False),
        dict(SMALL, model_type="qwen2", layer_types=["full_attention"] * 2),
    ),
}


@pytest.mark.parametrize(("older", "newer"), OLDER_AND_NEWER.values(), ids=OLDER_AND_NEWER.keys())
def test_older_configurations_mean_the_same(older: dict[str, Any], newer: dict[str, Any]) -> None:
    assert np.array_equal(seeded_member(older)(IDS), seeded_member(newer)(IDS))


def test_gemma_3_without_settings_has_a_global_layer_in_six_and_two_bases() -> None:
    config = LlamaConfig(**dict(GEMMA, num_hidden_layers=12), model_type="gemma3_text", sliding_window=4)
    assert [layer for layer in range(12) if config.window_of(layer) is None] == [5, 11]
    bases = [1 / float(config.frequencies_of(window).radians[4]) ** 2 for window in (None, 4)]
    assert bases == pytest.approx([1e6, 1e4], rel=1e-5)


# A model_type -> heads, of which the defaults of transformers are multiples.
HEADS = {"mistral": 8, "qwen2": 32, "qwen3": 32, "gemma": 16, "gemma2": 4, "gemma3_text": 4, "phi3": 4}


@pytest.mark.parametrize("kind", HEADS)
def test_what_a_file_leaves_out_is_what_transformers_takes_for_it(kind: str, tmp_path: Path) -> None:
    given = dict(
        model_type=kind, vocab_size=96, hidden_size=64, intermediate_size=24, num_hidden_layers=1,
        num_attention_heads=HEADS[kind], pad_token_id=0,
    )  # fmt: skip
    oracle = checkpoint(given, tmp_path)
    import torch

    (tmp_path / "config.json").write_text(json.dumps(given))
    with torch.no_grad():
        assert_close(models.load(tmp_path)(IDS), oracle(torch.from_numpy(IDS)).logits.numpy(), 1e-5)


def test_the_dtype_that_a_folder_names_is_that_of_its_weights(tmp_path: Path) -> None:
    """Transformers converts weights to it: after training in float32, "bfloat16" would round what was learnt."""
    for name in ("dtype", "torch_dtype"):
        config = LlamaConfig.from_json({**SMALL, name: "bfloat16"})
        io.save_pretrained(seeded_model(family_of("llama"), config), tmp_path)
        assert json.loads((tmp_path / "config.json").read_text())[name] == "float32"
        io.save_pretrained(models.load(tmp_path, dtype="float16"), tmp_path / "half")
        assert json.loads((tmp_path / "half" / "config.json").read_text())[name] == "float16"
    io.save_pretrained(seeded_member(MEMBERS["smollm2"]), tmp_path)
    assert not {"dtype", "torch_dtype"} & json.loads((tmp_path / "config.json").read_text()).keys()


def test_weights_are_float32_unless_another_dtype_is_asked_for(tmp_path: Path) -> None:
    io.save_pretrained(seeded_member(MEMBERS["smollm2"]), tmp_path / "float32")
    half = models.load(tmp_path / "float32", dtype="bfloat16")
    assert half.embedding.weight.dtype == "bfloat16" and half(IDS).dtype == "bfloat16"
    assert half.empty_cache(2, 16).layers[0].keys.dtype == "bfloat16"
    assert_close(np.asarray(half(IDS)).astype("float32"), models.load(tmp_path / "float32")(IDS), 0.05)
    io.save_pretrained(half, tmp_path / "bfloat16")
    whole = models.load(tmp_path / "bfloat16")
    assert whole.embedding.weight.dtype == "float32"
    saved = np.asarray(half.layers[0].feed_forward.up.weight).astype("float32")
    assert np.array_equal(whole.layers[0].feed_forward.up.weight, saved)
    assert np.array_equal(models.load(tmp_path / "bfloat16", dtype="bfloat16")(IDS), half(IDS))


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    model = seeded_member(MEMBERS["smollm2"])
    with pytest.raises(lx.ShapeError, match=r"Llama: tokens are integers \[B, T\], got .*3"):
        model(np.arange(3))
    with pytest.raises(ValueError, match="no activation 'gilu'"):
        Llama(LlamaConfig(**dict(SMALL, hidden_act="gilu")), key=lx.random.key(0))
    with pytest.raises(ValueError, match="no model_type 'lama'"):
        Llama(LlamaConfig(**SMALL, model_type="lama"), key=lx.random.key(0))
    with pytest.raises(ValueError, match="use_bidirectional_attention is true"):
        LlamaConfig.from_json(dict(SMALL, model_type="gemma3_text", use_bidirectional_attention=True))
    with pytest.raises(FileNotFoundError, match=r"SmolLM2-135M: there is no such folder; lavax downloads"):
        models.load("HuggingFaceTB/SmolLM2-135M")
    with pytest.raises(FileNotFoundError, match=r"the folder has no config\.json"):
        models.load(tmp_path)
    io.save_pretrained(model, tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"quantization_config": {"quant_method": "gptq"}}))
    with pytest.raises(ValueError, match=r"weights are quantised \(gptq\), which lavax does not read"):
        models.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(settings | {"num_hidden_layers": 3}))
    with pytest.raises(ValueError, match=r"missing: model\.layers\.2\.input_layernorm\.weight"):
        models.load(tmp_path)
