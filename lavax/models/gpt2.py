"""GPT-2: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019)."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.activations import activation_of
from lavax.models.config import Config
from lavax.models.family import WRITER, Family
from lavax.models.language_model import DecoderCache
from lavax.models.pretrained import PretrainedModel
from lavax.models.tensors import Tensors, with_prefix
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.cache import KeyValueCache
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class GPT2Config(Config):
    """Settings of a `GPT2`, by the names of its config.json."""

    model_type: str = "gpt2"
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None  # of the feed-forward layers; None: four times n_embd
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    tie_word_embeddings: bool = True
    eos_token_id: int | tuple[int, ...] = 50256

    @property
    def longest(self) -> int:
        """The most tokens of a text."""
        return self.n_positions


class Attention(Module):
    """Causal self-attention; one matrix makes queries, keys and values."""

    query_key_value: Linear
    out: Linear
    heads: int = field(static=True)
    scale: float = field(static=True)

    def __init__(self, config: GPT2Config, layer: int, *, key: ArrayLike, dtype: Any) -> None:
        width, heads = config.n_embd, config.n_head
        if width % heads:
            raise ValueError(f"GPT2: n_head={heads} must divide n_embd={width}")
        keys = random.split(key)
        self.query_key_value = Linear(width, 3 * width, key=keys[0], dtype=dtype)
        self.out = Linear(width, width, key=keys[1], dtype=dtype)
        self.heads = heads
        by_size = (width // heads) ** -0.5 if config.scale_attn_weights else 1.0
        self.scale = by_size / (layer + 1) if config.scale_attn_by_inverse_layer_idx else by_size

    def __call__(self, x: Value) -> Value:
        query, key, value = self._split(x)
        made = dot_product_attention(query, key, value, scale=self.scale, is_causal=True)
        return self.out(lnp.reshape(made, x.shape))

    def extend(self, x: Value, cache: KeyValueCache, lengths: Value) -> tuple[Value, KeyValueCache]:
        """The same for tokens that follow the `lengths` [B] that are cached, and the cache with them."""
        query, key, value = self._split(x)
        cache = cache.append(key, value, lengths)
        return self.out(lnp.reshape(cache.attend(query, lengths, scale=self.scale), x.shape)), cache

    def _split(self, x: Value) -> list[Value]:
        shape = (*x.shape[:-1], self.heads, -1)
        return [lnp.reshape(part, shape) for part in lnp.split(self.query_key_value(x), 3, axis=-1)]


class FeedForward(Module):
    """Two linear layers with an activation between them."""

    expand: Linear
    contract: Linear
    activation: str = field(static=True)

    def __init__(self, config: GPT2Config, *, key: ArrayLike, dtype: Any) -> None:
        inner = config.n_inner or 4 * config.n_embd
        keys = random.split(key)
        self.expand = Linear(config.n_embd, inner, key=keys[0], dtype=dtype)
        self.contract = Linear(inner, config.n_embd, key=keys[1], dtype=dtype)
        activation_of(config.activation_function)
        self.activation = config.activation_function

    def __call__(self, x: Value) -> Value:
        return self.contract(activation_of(self.activation)(self.expand(x)))


class Block(Module):
    """Attention and a feed-forward layer, each after a normalisation and added to its input."""

    attention_norm: LayerNorm
    attention: Attention
    feed_forward_norm: LayerNorm
    feed_forward: FeedForward

    def __init__(self, config: GPT2Config, layer: int, *, key: ArrayLike, dtype: Any) -> None:
        keys = random.split(key)
        self.attention_norm = LayerNorm(config.n_embd, config.layer_norm_epsilon, dtype=dtype)
        self.attention = Attention(config, layer, key=keys[0], dtype=dtype)
        self.feed_forward_norm = LayerNorm(config.n_embd, config.layer_norm_epsilon, dtype=dtype)
        self.feed_forward = FeedForward(config, key=keys[1], dtype=dtype)

    def __call__(self, x: Value) -> Value:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))

    def extend(self, x: Value, cache: KeyValueCache, lengths: Value) -> tuple[Value, KeyValueCache]:
        """The same for tokens that follow those in the cache."""
        attended, cache = self.attention.extend(self.attention_norm(x), cache, lengths)
        x = x + attended
        return x + self.feed_forward(self.feed_forward_norm(x)), cache


class GPT2(PretrainedModel):
    """A language model with learned positions: `logits = model(ids)`, integers [B, T] to [B, T, vocab_size].

    T is at most `config.n_positions`. The output layer is the table of embeddings, unless `config` says otherwise.
    There is no dropout.
    """

    tokens: Embedding
    positions: Embedding
    blocks: tuple[Block, ...]
    norm: LayerNorm
    head: Linear | None

    def __init__(self, config: GPT2Config, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys = random.split(key, config.n_layer + 3)
        self.config = config
        self.tokens = Embedding(config.vocab_size, config.n_embd, key=keys[0], dtype=dtype)
        self.positions = Embedding(config.n_positions, config.n_embd, key=keys[1], dtype=dtype)
        self.blocks = tuple(
            Block(config, layer, key=keys[3 + layer], dtype=dtype) for layer in range(config.n_layer)
        )
        self.norm = LayerNorm(config.n_embd, config.layer_norm_epsilon, dtype=dtype)
        self.head = None if config.tie_word_embeddings else Linear(
            config.n_embd, config.vocab_size, bias=False, key=keys[2], dtype=dtype
        )

    def __call__(self, ids: ArrayLike) -> Value:
        given = self._checked(ids)
        x = self.tokens(given) + self.positions(lnp.arange(given.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x))

    def empty_cache(self, batch: int, length: int, dtype: Any = None) -> DecoderCache:
        """Room for `length` tokens in each row, in the dtype of the weights unless another is given."""
        config, kind = self.config, self.norm.weight.dtype if dtype is None else dtype
        heads = config.n_head, config.n_embd // config.n_head
        layers = tuple(KeyValueCache.zeros(batch, length, *heads, kind) for _ in self.blocks)
        return DecoderCache(layers, lnp.zeros(batch, "int32"))

    def extend(self, ids: ArrayLike, cache: DecoderCache) -> tuple[Value, DecoderCache]:
        """The states [B, T, n_embd] of T more tokens in each row, and the cache with them."""
        given = self._checked(ids)
        positions = lnp.expand_dims(cache.lengths, 1) + lnp.arange(given.shape[1], dtype="int32")
        x, layers = self.tokens(given) + self.positions(positions), []
        for block, held in zip(self.blocks, cache.layers, strict=True):
            x, filled = block.extend(x, held, cache.lengths)
            layers.append(filled)
        return self.norm(x), DecoderCache(tuple(layers), cache.lengths + given.shape[1])

    def logits(self, hidden: ArrayLike) -> Value:
        """The scores of all tokens to come next: [..., n_embd] to [..., vocab_size]."""
        return self.tokens.attend(hidden) if self.head is None else self.head(hidden)

    def _checked(self, ids: ArrayLike) -> Value:
        given = as_value(ids)
        if given.ndim != 2 or given.shape[1] > self.config.n_positions:
            most = self.config.n_positions
            raise shape_error(f"GPT2: ids are [B, T] with T up to n_positions={most}, got {given.type}")
        return given


def _prepared(tensors: Tensors, config: GPT2Config) -> Tensors:
    """Files of the model without its output layer, such as the first published ones, lack the prefix."""
    return with_prefix(tensors, "transformer.", besides=r"lm_head\.")


FAMILY = Family(
    GPT2Config,
    GPT2,
    (
        (r"^tokens\.", "transformer.wte."),
        (r"^positions\.", "transformer.wpe."),
        (r"^norm\.", "transformer.ln_f."),
        (r"^head\.", "lm_head."),
        (r"^blocks\.", "transformer.h."),
        (r"\.attention_norm\.", ".ln_1."),
        (r"\.feed_forward_norm\.", ".ln_2."),
        (r"\.attention\.query_key_value\.", ".attn.c_attn."),
        (r"\.attention\.out\.", ".attn.c_proj."),
        (r"\.feed_forward\.expand\.", ".mlp.c_fc."),
        (r"\.feed_forward\.contract\.", ".mlp.c_proj."),
    ),
    transposed=r"\.c_(attn|proj|fc)\.weight$",
    prepared=_prepared,
    optional=r"\.attn\.(masked_)?bias$|^lm_head\.weight$",  # causal masks; the table of embeddings once more
    adapter_task=WRITER,
)
