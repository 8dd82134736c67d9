"""Phi 3 and 4: decoders of the Llama family whose files hold queries, keys and values, and gate and up, as one."""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lavax.models.family import WRITER, Family
from lavax.models.llama import NAMES, OPTIONAL, Llama
from lavax.models.llama_config import LlamaConfig
from lavax.models.tensors import Tensors, made_when_asked

# A matrix in the file -> those of the model, whose rows it holds one after the other.
_JOINED = {
    ".self_attn.qkv_proj.": (".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."),
    ".mlp.gate_up_proj.": (".mlp.gate_proj.", ".mlp.up_proj."),
}


def _rows(config: LlamaConfig) -> Mapping[str, tuple[int, ...]]:
    """How many rows each part of a joined matrix has."""
    queries, groups, head = config.heads
    return {
        ".self_attn.qkv_proj.": (queries * head, groups * head, groups * head),
        ".mlp.gate_up_proj.": (config.intermediate_size, config.intermediate_size),
    }


def _split(tensors: Tensors, config: LlamaConfig) -> Tensors:
    made: dict[str, Callable[[], np.ndarray]] = {}
    for name in tensors:
        joined = next((each for each in _JOINED if each in name), None)
        if joined is None:
            made[name] = _part(tensors, name, slice(None))
            continue
        start = 0
        for part, count in zip(_JOINED[joined], _rows(config)[joined], strict=True):
            made[name.replace(joined, part)] = _part(tensors, name, slice(start, start + count))
            start += count
    return made_when_asked(made)


def _part(tensors: Tensors, name: str, rows: slice) -> Callable[[], np.ndarray]:
    return lambda: tensors[name][rows]


def _joined(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    made = dict(tensors)
    for joined, parts in _JOINED.items():
        for name in [name for name in tensors if parts[0] in name]:
            arrays = [made.pop(name.replace(parts[0], part)) for part in parts]
            made[name.replace(parts[0], joined)] = np.concatenate(arrays)
    return made


FAMILY = Family(
    LlamaConfig,
    Llama,
    (*NAMES, (r"\.feed_forward_norm\.", ".post_attention_layernorm.")),
    prepared=_split,
    published=_joined,
    optional=OPTIONAL,
    adapter_task=WRITER,
)
