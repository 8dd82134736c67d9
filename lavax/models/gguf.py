"""Models in GGUF files: the settings that config.json would have, and tensors under the names of transformers."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lavax.io.gguf import GGUFFile
from lavax.models.tensors import Tensors, made_when_asked

# "general.architecture" -> the "model_type" of config.json. Mistral's models say that they are llama.
ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
}

# A setting of config.json -> its name in the metadata, behind that of the architecture.
SETTINGS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "max_position_embeddings": "context_length",
    "rope_theta": "rope.freq_base",
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
TOKENS = {"bos_token_id": "tokenizer.ggml.bos_token_id", "eos_token_id": "tokenizer.ggml.eos_token_id"}

# A scaling of rotary embeddings -> its settings in config.json, and their names in the metadata.
SCALINGS: Mapping[str, Mapping[str, str]] = {
    "linear": {"factor": "factor"},
    "yarn": {"factor": "factor", "original_max_position_embeddings": "original_context_length"},
}
_FACTORS = "rope_freqs.weight"

# Names of tensors, by `re.sub`, and what they become.
NAMES = (
    (r"^token_embd\.", "model.embed_tokens."),
    (r"^output_norm\.", "model.norm."),
    (r"^output\.", "lm_head."),
    (r"^blk\.(\d+)\.", r"model.layers.\1."),
    (r"\.attn_norm\.", ".input_layernorm."),
    (r"\.post_attention_norm\.", ".post_attention_layernorm."),
    (r"\.post_ffw_norm\.", ".post_feedforward_layernorm."),
    (r"\.attn_([qk])_norm\.", r".self_attn.\1_norm."),
    (r"\.attn_([qkv])\.", r".self_attn.\1_proj."),
    (r"\.attn_output\.", ".self_attn.o_proj."),
    (r"\.ffn_(gate|up|down)\.", r".mlp.\1_proj."),
)


def config_data(file: GGUFFile) -> dict[str, Any]:
    """What config.json would say of the model. Raises ValueError for models and rotations that are not read."""
    metadata = file.metadata
    kind = metadata.get("general.architecture")
    if kind not in ARCHITECTURES:
        raise ValueError(f"{file.path}: no architecture {kind!r} is read; there are {', '.join(ARCHITECTURES)}")
    found = {name: metadata.get(f"{kind}.{key}") for name, key in SETTINGS.items()}
    found |= {name: metadata.get(key) for name, key in TOKENS.items()}
    return {
        **{name: value for name, value in found.items() if value is not None},
        **_rotation(file, kind),
        **_query_scale(kind, found),
        "model_type": ARCHITECTURES[kind],
        "vocab_size": file.shape("token_embd.weight")[0],
        "tie_word_embeddings": "output.weight" not in file,
    }


def _rotation(file: GGUFFile, kind: str) -> dict[str, Any]:
    """The scaling of rotary embeddings. Raises ValueError for one that is not read.

    Llama 3's is in a tensor: by how much each pair turns slower. That is the scaling "longrope" with one list for all
    lengths.
    """
    if _FACTORS in file:
        factors = file[_FACTORS].tolist()
        lists = {"short_factor": factors, "long_factor": factors}
        return {"rope_scaling": {"rope_type": "longrope", "attention_factor": 1.0, **lists}}
    scaling = file.metadata.get(f"{kind}.rope.scaling.type", "none")
    if scaling == "none":
        return {}
    if scaling not in SCALINGS:
        raise ValueError(f"{file.path}: its rotary embeddings are scaled ({scaling}); read are {', '.join(SCALINGS)}")
    found = {name: file.metadata.get(f"{kind}.rope.scaling.{key}") for name, key in SCALINGS[scaling].items()}
    given = {name: value for name, value in found.items() if value is not None}
    return {"rope_scaling": {"rope_type": scaling, **given}}


# The models of 27 billion numbers, by their layers, have heads that are smaller than by what queries are scaled.
_LARGEST = {("gemma2", 46), ("gemma3", 62)}


def _query_scale(kind: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """By the root of what queries are divided, which files leave to the reader."""
    if kind not in ("gemma2", "gemma3"):
        return {}
    if (kind, found["num_hidden_layers"]) in _LARGEST:
        return {"query_pre_attn_scalar": found["hidden_size"] / found["num_attention_heads"]}
    return {"query_pre_attn_scalar": found["head_dim"]}


def published_tensors(file: GGUFFile, config: Mapping[str, Any]) -> Tensors:
    """The tensors under their names in published folders, each dequantised when it is asked for.

    Files of llama hold the rows of queries and keys in another order: those that rotate together are neighbours. Files
    of Gemma hold the scales of norms themselves, published folders what they are beside 1.
    """
    kind = config["model_type"]
    heads = {"q": config["num_attention_heads"], "k": config.get("num_key_value_heads", config["num_attention_heads"])}

    def reader(name: str) -> Callable[[], np.ndarray]:
        turned = re.search(r"\.attn_([qk])\.", name) if kind == "llama" else None
        if turned is not None:
            return lambda: _halves_apart(file[name], heads[turned[1]])
        if kind.startswith("gemma") and name.endswith("norm.weight"):
            return lambda: file[name] - 1
        return lambda: file[name]

    return made_when_asked({_published(name, kind): reader(name) for name in file if name != _FACTORS})


def _published(name: str, kind: str) -> str:
    before_feed_forward = "pre_feedforward" if kind in ("gemma2", "gemma3_text") else "post_attention"
    for pattern, replacement in (*NAMES, (r"\.ffn_norm\.", f".{before_feed_forward}_layernorm.")):
        name = re.sub(pattern, replacement, name)
    return name


def _halves_apart(rows: np.ndarray, heads: int) -> np.ndarray:
    """Each head's rows 0, 1, 2, 3, ... in the order 0, 2, 4, ..., 1, 3, 5, ..."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return np.swapaxes(pairs, 1, 2).reshape(rows.shape)
