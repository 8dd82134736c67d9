"""Configurations of the Llama family, and what distinguishes its members."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from lavax.base.quick_dataclasses import dataclass
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
    windows: str = "all"  # the layers with a sliding window if "layer_types" does not say, in WINDOWED
    theta: float | None = None  # the base of rotary frequencies if the file has none
    local_theta: float | None = None  # that of layers with a sliding window, if they have their own


@dataclass(frozen=True)
class Experts:
    """The feed-forward layers of a mixture: how many, their width, and how many see a token."""

    count: int
    hidden: int
    k: int
    normalize: bool  # whether the shares of a token's experts sum to 1


_gemma = partial(Dialect, offset_norms=True, always_tied=True, activation="gelu_pytorch_tanh")
DIALECTS: Mapping[str, Dialect] = {
    "llama": Dialect(windows="none"),
    "mistral": Dialect(),
    "phi3": Dialect(),
    "qwen2": Dialect(biased_attention=True, windows="last"),
    "qwen3": Dialect(normed_heads=True, windows="last"),
    "mixtral": Dialect(theta=1e6),
    "qwen3_moe": Dialect(normed_heads=True, windows="last"),
    "gemma": _gemma(windows="none"),
    "gemma2": _gemma(normed_results=True, windows="every other"),
    "gemma3_text": _gemma(normed_heads=True, normed_results=True, windows="most", theta=1e6, local_theta=1e4),
}

# Dialect.windows -> whether a layer has the window. Older files have no "layer_types", but these settings.
WINDOWED: Mapping[str, Callable[[LlamaConfig, int], bool]] = {
    "all": lambda config, layer: True,
    "every other": lambda config, layer: layer % 2 == 0,
    "last": lambda config, layer: bool(config.use_sliding_window) and layer >= config.first_window,
    "most": lambda config, layer: (layer + 1) % (config.sliding_window_pattern or 6) != 0,
    "none": lambda config, layer: False,
}

_GEMMA_2 = dict(num_key_value_heads=4, head_dim=256, query_pre_attn_scalar=256, sliding_window=4096)
_QWEN = dict(max_position_embeddings=32768, sliding_window=4096)
# What transformers takes for settings that a file leaves out, where `LlamaConfig` has something else.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "mistral": dict(num_key_value_heads=8, sliding_window=4096, max_position_embeddings=131072),
    "phi3": dict(max_position_embeddings=4096, rms_norm_eps=1e-5),
    "qwen2": dict(_QWEN, num_key_value_heads=32),
    "qwen3": dict(_QWEN, num_key_value_heads=32, head_dim=128),
    "mixtral": dict(num_key_value_heads=8, max_position_embeddings=131072, rms_norm_eps=1e-5, num_local_experts=8),
    "qwen3_moe": dict(
        _QWEN, num_key_value_heads=4, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768
    ),
    "gemma": dict(num_key_value_heads=16, head_dim=256, max_position_embeddings=8192),
    "gemma2": dict(
        _GEMMA_2, max_position_embeddings=8192, attn_logit_softcapping=50.0, final_logit_softcapping=30.0
    ),
    "gemma3_text": dict(_GEMMA_2, max_position_embeddings=131072),
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
    original_max_position_embeddings: int | None = None
    partial_rotary_factor: float | None = None
    tie_word_embeddings: bool | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    rope_theta: float | None = None
    rope_local_base_freq: float | None = None
    rope_scaling: Settings | None = None
    rope_parameters: Settings | None = None
    sliding_window: int | None = None
    use_sliding_window: bool | None = None
    max_window_layers: int | None = None
    sliding_window_pattern: int | None = None
    layer_types: tuple[str, ...] | None = None
    query_pre_attn_scalar: float | None = None
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None
    use_bidirectional_attention: bool | None = None
    eos_token_id: int | tuple[int, ...] | None = None
    pad_token_id: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.use_bidirectional_attention:
            raise ValueError(
                "LlamaConfig: use_bidirectional_attention is true, but the tokens of these decoders see no later ones"
            )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The configuration that config.json holds; what it leaves out is what transformers takes for it."""
        return super().from_json({**DEFAULTS.get(str(data.get("model_type")), {}), **data})

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
        if self.model_type == "gemma" and self.hidden_act == "gelu":
            return self.dialect.activation  # the first files of Gemma say "gelu" where they mean its approximation
        return self.hidden_activation or self.hidden_act or self.dialect.activation

    @property
    def is_tied(self) -> bool:
        """Whether the output layer is the table of embeddings."""
        return self.dialect.always_tied if self.tie_word_embeddings is None else self.tie_word_embeddings

    @property
    def attention_scale(self) -> float:
        """The factor on the products of queries and keys."""
        return 1 / math.sqrt(self.query_pre_attn_scalar or self.heads[2])

    @property
    def first_window(self) -> int:
        """The first layer with a sliding window, where those after it have it, too."""
        return 28 if self.max_window_layers is None else self.max_window_layers

    def window_of(self, layer: int) -> int | None:
        """How many keys a query of that layer sees, its own among them; None: all before it."""
        if self.sliding_window is None or self.use_sliding_window is False:
            return None
        if self.layer_types is not None:
            return self.sliding_window if self.layer_types[layer] == "sliding_attention" else None
        return self.sliding_window if WINDOWED[self.dialect.windows](self, layer) else None

    def experts_of(self, layer: int) -> Experts | None:
        """The experts of that layer; None: it has one feed-forward layer for all tokens."""
        return None

    @property
    def longest(self) -> int:
        """The most tokens of a text. Some files name those of the training beside the factor of a scaling."""
        settings = self._scaling
        trained = settings.get("original_max_position_embeddings") or self.max_position_embeddings
        return max(self.max_position_embeddings, int(trained * (settings.get("factor") or 1)))

    @property
    def rotates_by_length(self) -> bool:
        """Whether the rotary frequencies depend on the positions in use."""
        return (self._scaling.get("rope_type") or self._scaling.get("type")) in ("dynamic", "longrope", "su")

    @property
    def _scaling(self) -> Mapping[str, Any]:
        """The settings of the scaling, or for several kinds of layers those of each."""
        return self.rope_scaling or self.rope_parameters or {}

    def frequencies_of(self, window: int | None, length: Any = None) -> rotary.RotaryFrequencies:
        """The rotary frequencies of layers with that window: in some models, those with one have their own.

        `length` is the number of positions in use, where they depend on it.
        """
        scaling, theta = self._rotation_of(window)
        trained = self.original_max_position_embeddings
        return rotary.frequencies(
            self.heads[2],
            theta,
            scaling if trained is None else {"original_max_position_embeddings": trained, **scaling},
            partial_rotary_factor=self.partial_rotary_factor,
            max_position_embeddings=self.max_position_embeddings,
            length=length,
        )

    def _rotation_of(self, window: int | None) -> tuple[Mapping[str, Any], float | None]:
        """The settings of the scaling, and the base. Newer files have both in "rope_parameters"."""
        settings: Mapping[str, Any] = self.rope_parameters or {}
        own = settings.get("full_attention" if window is None else "sliding_attention")
        if own is not None:
            return own, own.get("rope_theta")
        if window is not None and self.dialect.local_theta is not None:
            return {}, self.rope_local_base_freq or self.dialect.local_theta
        return self.rope_scaling or settings, settings.get("rope_theta") or self.rope_theta or self.dialect.theta
