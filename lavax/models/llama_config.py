"""Configurations of the Llama family, and what distinguishes its members."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lavax.models.config import Config, Settings
from lavax.nn import rotary


@dataclass(frozen=True)
class Dialect:
    """What a config.json leaves to its "model_type"."""

    biased_attention: bool = False  # of queries, keys and values, whatever "attention_bias" says
    normed_heads: bool = False  # root-mean-square norms of queries and keys
    offset_norms: bool = False  # norms scale by 1 + weight, and embeddings by the root of the hidden size
    normed_results: bool = False  # norms after attention and after the feed-forward layer, too
    always_tied: bool = False  # the output layer is the table of embeddings unless the file says otherwise
    activation: str = "silu"
    windows: str = "all"  # the layers with a sliding window if "layer_types" does not say: all, every other, or none


@dataclass(frozen=True)
class Experts:
    """The feed-forward layers of a mixture: how many, their width, and how many see a token."""

    count: int
    hidden: int
    k: int
    normalize: bool  # whether the shares of a token's experts sum to 1


_GEMMA = dict(offset_norms=True, always_tied=True, activation="gelu_pytorch_tanh")
DIALECTS: Mapping[str, Dialect] = {
    "llama": Dialect(windows="none"),
    "mistral": Dialect(),
    "qwen2": Dialect(biased_attention=True, windows="none"),
    "qwen3": Dialect(normed_heads=True, windows="none"),
    "mixtral": Dialect(),
    "qwen3_moe": Dialect(normed_heads=True, windows="none"),
    "gemma": Dialect(**_GEMMA, windows="none"),  # type: ignore[arg-type]
    "gemma2": Dialect(**_GEMMA, normed_results=True, windows="every other"),  # type: ignore[arg-type]
    "gemma3_text": Dialect(**_GEMMA, normed_heads=True, normed_results=True),  # type: ignore[arg-type]
}


@dataclass(frozen=True)
class LlamaConfig(Config):
    """Settings of a decoder of the Llama family, by the names of its config.json."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    model_type: str = "llama"
    hidden_act: str | None = None
    hidden_activation: str | None = None
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048
    tie_word_embeddings: bool | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    rope_theta: float | None = None
    rope_local_base_freq: float | None = None
    rope_scaling: Settings | None = None
    rope_parameters: Settings | None = None
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    layer_types: tuple[str, ...] | None = None
    query_pre_attn_scalar: float | None = None
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    pad_token_id: int | None = None

    @property
    def dialect(self) -> Dialect:
        """The model_type's own ways. Raises ValueError for one that is not of the family."""
        if self.model_type not in DIALECTS:
            raise ValueError(f"LlamaConfig: no model_type {self.model_type!r}; there are {', '.join(DIALECTS)}")
        return DIALECTS[self.model_type]

    @property
    def heads(self) -> tuple[int, int, int]:
        """Heads of queries, heads of keys and values, and features of a head."""
        queries = self.num_attention_heads
        return queries, self.num_key_value_heads or queries, self.head_dim or self.hidden_size // queries

    @property
    def activation(self) -> str:
        """The name of the feed-forward layers' activation."""
        return self.hidden_activation or self.hidden_act or self.dialect.activation

    @property
    def is_tied(self) -> bool:
        """Whether the output layer is the table of embeddings."""
        return self.dialect.always_tied if self.tie_word_embeddings is None else self.tie_word_embeddings

    @property
    def attention_scale(self) -> float:
        """The factor on the products of queries and keys."""
        return 1 / math.sqrt(self.query_pre_attn_scalar or self.heads[2])

    def window_of(self, layer: int) -> int | None:
        """How many keys a query of that layer sees, its own among them; None: all before it."""
        if self.sliding_window is None or self.use_sliding_window is False:
            return None
        if self.layer_types is not None:
            return self.sliding_window if self.layer_types[layer] == "sliding_attention" else None
        windows = self.dialect.windows
        return self.sliding_window if windows == "all" or (windows == "every other" and layer % 2 == 0) else None

    def experts_of(self, layer: int) -> Experts | None:
        """The experts of that layer; None: it has one feed-forward layer for all tokens."""
        return None

    def frequencies_of(self, window: int | None) -> rotary.RotaryFrequencies:
        """The rotary frequencies of layers with that window: in some models, those with one have their own."""
        kind = "full_attention" if window is None else "sliding_attention"
        settings: Mapping[str, Any] = self.rope_parameters or {}
        settings = settings.get(kind) or settings
        scaling, theta = self.rope_scaling or settings, settings.get("rope_theta") or self.rope_theta
        if window is not None and self.rope_local_base_freq is not None:
            scaling, theta = {}, self.rope_local_base_freq
        return rotary.frequencies(
            self.heads[2], theta, scaling, max_position_embeddings=self.max_position_embeddings
        )
