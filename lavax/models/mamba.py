"""Mamba: language models without attention, whose memory does not grow with the text. Gu and Dao (2023)."""
from __future__ import annotations

import math
from typing import Any, ClassVar

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32, int32
from lavax.models.config import Config
from lavax.models.family import WRITER, Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.tensors import Tensors, with_prefix
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.mamba import Mamba, MambaState
from lavax.nn.modules.mamba2 import Mamba2
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import RMSNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class MambaConfig(Config):
    """Settings of a `MambaLanguageModel` of `Mamba` blocks, by the names of its config.json."""

    model_type: str = "mamba"
    vocab_size: int = 50280
    hidden_size: int = 768
    num_hidden_layers: int = 32
    state_size: int = 16
    expand: int = 2
    conv_kernel: int = 4
    time_step_rank: int | str = "auto"
    use_bias: bool = False
    use_conv_bias: bool = True
    hidden_act: str = "silu"
    layer_norm_epsilon: float = 1e-5
    residual_in_fp32: bool = True
    tie_word_embeddings: bool = True
    eos_token_id: int | tuple[int, ...] | None = 0
    pad_token_id: int | None = 0

    @property
    def step_rank(self) -> int:
        """The inner width of the layer that computes step sizes. Raises ValueError for words other than "auto"."""
        if self.time_step_rank == "auto":
            return math.ceil(self.hidden_size / 16)
        if isinstance(self.time_step_rank, str):
            raise ValueError(f"MambaConfig: time_step_rank is a number or 'auto', got {self.time_step_rank!r}")
        return self.time_step_rank

    def mixer(self, *, key: ArrayLike, dtype: Any) -> Mamba | Mamba2:
        """The block of a layer."""
        return Mamba(
            self.hidden_size,
            self.state_size,
            self.conv_kernel,
            self.expand,
            self.step_rank,
            self.use_bias,
            self.use_conv_bias,
            key=key,
            dtype=dtype,
        )


class MambaCache(Module):
    """The states of all layers, and how many tokens of each row they have seen: `lengths`, int32 [B]."""

    layers: tuple[MambaState, ...]
    lengths: Any


class Layer(Module):
    """A Mamba block after a normalisation, added to its input, which is float32 if `wide`."""

    norm: RMSNorm
    mixer: Mamba | Mamba2
    wide: bool = field(static=True)

    def __init__(self, config: MambaConfig, *, key: ArrayLike, dtype: Any) -> None:
        self.norm = RMSNorm(config.hidden_size, config.layer_norm_epsilon, dtype=dtype)
        self.mixer = config.mixer(key=key, dtype=dtype)
        self.wide = config.residual_in_fp32

    def __call__(self, x: Value, state: MambaState, counts: ArrayLike | None = None) -> tuple[Value, MambaState]:
        normed = self.norm(cast(x, as_value(self.norm.weight).type.dtype))
        mixed, state = self.mixer.extend(normed, state, counts)
        return (cast(x, float32) if self.wide else x) + mixed, state


class MambaLanguageModel(PretrainedModel):
    """Tokens [B, T] to logits [B, T, vocabulary]: `logits = model(ids)`. The configuration makes the blocks.

    `extend` computes new tokens from the states of those before; a state has the same size for any number of tokens.
    The output layer is the table of embeddings, unless the configuration says otherwise.
    """

    takes_counts: ClassVar[bool] = True

    embedding: Embedding
    layers: tuple[Layer, ...]
    norm: RMSNorm
    head: Linear | None

    def __init__(self, config: MambaConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        if config.hidden_act not in ("silu", "swish"):
            raise ValueError(f"MambaLanguageModel: hidden_act is {config.hidden_act!r}, and only silu is known")
        keys = random.split(key, config.num_hidden_layers + 2)
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.hidden_size, key=keys[0], dtype=dtype)
        self.layers = tuple(Layer(config, key=each, dtype=dtype) for each in keys[2:])
        self.norm = RMSNorm(config.hidden_size, config.layer_norm_epsilon, dtype=dtype)
        self.head = None if config.tie_word_embeddings else Linear(
            config.hidden_size, config.vocab_size, bias=False, key=keys[1], dtype=dtype
        )

    def __call__(self, ids: ArrayLike) -> Value:
        given = as_value(ids)
        batch = given.shape[0] if given.ndim else 0
        return self.logits(self.extend(given, self.empty_cache(batch, 0))[0])

    def empty_cache(self, batch: int, length: int, dtype: Any = None) -> MambaCache:
        """The states before the first token. They have room for any `length`; `dtype` is that of inputs that are kept,
        by default that of the weights."""
        layers = tuple(layer.mixer.empty_state(batch, dtype) for layer in self.layers)
        return MambaCache(layers, lnp.zeros(batch, "int32"))

    def extend(
        self, ids: ArrayLike, cache: MambaCache, counts: ArrayLike | None = None
    ) -> tuple[Value, MambaCache]:
        """The hidden states [B, T, hidden_size] of T more tokens in each row, and the cache with them.

        With `counts` [B], only so many tokens of each row are there; those after them are padding, and leave no trace.
        """
        given = as_value(ids)
        if given.ndim != 2 or not given.type.dtype.is_integer:
            raise shape_error(f"MambaLanguageModel: tokens are integers [B, T], got {given.type}")
        x, states = self.embedding(given), []
        for layer, state in zip(self.layers, cache.layers, strict=True):
            x, state = layer(x, state, counts)
            states.append(state)
        new = given.shape[1] if counts is None else cast(as_value(counts), int32)
        normed = self.norm(cast(x, as_value(self.norm.weight).type.dtype))
        return normed, MambaCache(tuple(states), cache.lengths + new)

    def logits(self, hidden: ArrayLike) -> Value:
        """The scores of all tokens to come next: [..., hidden_size] to [..., vocab_size]."""
        return self.embedding.attend(hidden) if self.head is None else self.head(hidden)


def _prepared(tensors: Tensors, config: Any) -> Tensors:
    """Files of the model without its output layer lack the prefix."""
    return with_prefix(tensors, "backbone.", besides=r"lm_head\.")


FAMILY = Family(
    MambaConfig,
    MambaLanguageModel,
    (
        (r"^embedding\.", "backbone.embeddings."),
        (r"^layers\.", "backbone.layers."),
        (r"^norm\.", "backbone.norm_f."),
        (r"^head\.", "lm_head."),
        (r"\.mixer\.project_(in|out)\.", r".mixer.\1_proj."),
        (r"\.mixer\.convolution\.", ".mixer.conv1d."),
        (r"\.mixer\.select\.", ".mixer.x_proj."),
        (r"\.mixer\.step\.", ".mixer.dt_proj."),
        (r"\.mixer\.log_rates$", ".mixer.A_log"),
        (r"\.mixer\.skip$", ".mixer.D"),
    ),
    prepared=_prepared,
    optional=r"^lm_head\.weight$",  # the table of embeddings once more
    adapter_task=WRITER,
)
