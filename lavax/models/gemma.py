"""Gemma 2 and 3: decoders of the Llama family with norms after attention and after the feed-forward layer, too."""
from __future__ import annotations

from lavax.models.family import WRITER, Family
from lavax.models.llama import NAMES, OPTIONAL, Llama
from lavax.models.llama_config import LlamaConfig

_NORMS = (
    (r"\.attention_result_norm\.", ".post_attention_layernorm."),
    (r"\.feed_forward_norm\.", ".pre_feedforward_layernorm."),
    (r"\.feed_forward_result_norm\.", ".post_feedforward_layernorm."),
)
FAMILY = Family(LlamaConfig, Llama, (*NAMES, *_NORMS), optional=OPTIONAL, adapter_task=WRITER)
