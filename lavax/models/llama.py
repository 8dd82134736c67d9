"""The Llama family of language models: Llama, SmolLM2, Mistral, Qwen 2 and 3, Gemma 1 to 3."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax import random
from lavax.models.activations import activation_of
from lavax.models.family import WRITER, Family
from lavax.models.language_model import DecoderCache
from lavax.models.llama_config import LlamaConfig
from lavax.models.pretrained import PretrainedModel
from lavax.nn import rotary
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.cache import KeyValueCache
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.mixture_of_experts import MixtureOfExperts
from lavax.nn.modules.module import Module, field
from lavax.nn.normalization import rms_norm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

Tables = tuple[Value, Value]  # cosines and sines of positions


class Rotation(NamedTuple):
    """How queries and keys turn. `cached`: by what all keys of a cache turn, if it holds them as they were before."""

    new: Tables
    cached: Tables | None = None


class Norm(Module):
    """Root-mean-square norm over the last axis; in some dialects `weight` is the scale less 1."""

    weight: Any
    eps: float = field(static=True)
    is_offset: bool = field(static=True)

    def __init__(self, size: int, config: LlamaConfig, dtype: Any) -> None:
        self.is_offset = config.dialect.offset_norms
        self.weight = lnp.zeros(size, dtype) if self.is_offset else lnp.ones(size, dtype)
        self.eps = config.rms_norm_eps

    def __call__(self, x: ArrayLike) -> Value:
        return rms_norm(x, self.weight + 1 if self.is_offset else self.weight, self.eps)


class Attention(Module):
    """Causal attention with rotary positions, in groups of heads that share keys and values."""

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    query_norm: Norm | None
    key_norm: Norm | None
    head: int = field(static=True)
    scale: float = field(static=True)
    window: int | None = field(static=True)
    softcap: float | None = field(static=True)

    def __init__(self, config: LlamaConfig, layer: int, *, key: ArrayLike, dtype: Any) -> None:
        queries, groups, head = config.heads
        hidden, biased = config.hidden_size, config.attention_bias or config.dialect.biased_attention
        keys = random.split(key, 4)
        self.query = Linear(hidden, queries * head, biased, key=keys[0], dtype=dtype)
        self.key = Linear(hidden, groups * head, biased, key=keys[1], dtype=dtype)
        self.value = Linear(hidden, groups * head, biased, key=keys[2], dtype=dtype)
        self.output = Linear(queries * head, hidden, config.attention_bias, key=keys[3], dtype=dtype)
        self.query_norm = Norm(head, config, dtype) if config.dialect.normed_heads else None
        self.key_norm = Norm(head, config, dtype) if config.dialect.normed_heads else None
        self.head, self.scale, self.window = head, config.attention_scale, config.window_of(layer)
        self.softcap = config.attn_logit_softcapping

    def __call__(
        self, x: Value, rotation: Rotation, cache: KeyValueCache | None = None, lengths: Value | None = None
    ) -> tuple[Value, KeyValueCache | None]:
        batch, length, _ = x.shape
        query, key, value = (self._by_head(project(x)) for project in (self.query, self.key, self.value))
        if self.query_norm is not None and self.key_norm is not None:
            query, key = self.query_norm(query), self.key_norm(key)
        query, turned = rotary.rotate(query, *rotation.new), rotary.rotate(key, *rotation.new)
        if cache is not None and lengths is not None:
            cache = cache.append(turned if rotation.cached is None else key, value, lengths)
        mixed = self._attend(query, turned, value, _turned(cache, rotation), lengths)
        return self.output(lnp.reshape(mixed, (batch, length, -1))), cache

    def _by_head(self, x: Value) -> Value:
        return lnp.reshape(x, (*x.shape[:2], -1, self.head))

    def _attend(
        self, query: Value, key: Value, value: Value, cache: KeyValueCache | None, lengths: Value | None
    ) -> Value:
        if self.softcap is not None:
            return self._attend_capped(query, key, value, cache, lengths)
        if cache is not None and lengths is not None:
            return cache.attend(query, lengths, window=self.window, scale=self.scale)
        window = None if self.window is None else (self.window - 1, 0)
        return dot_product_attention(
            query, key, value, scale=self.scale, is_causal=True, local_window_size=window
        )

    def _attend_capped(
        self, query: Value, key: Value, value: Value, cache: KeyValueCache | None, lengths: Value | None
    ) -> Value:
        """Scores are bent below a cap by its hyperbolic tangent (Gemma 2), so they are in memory."""
        batch, queries, heads, head = query.shape
        if cache is None or lengths is None:
            lengths = lnp.zeros(batch, "int32")
            cache = KeyValueCache(key, value)
        grouped = lnp.reshape(query, (batch, queries, -1, heads // cache.keys.shape[2], head))
        keys, values = (cast(as_value(x), query.type.dtype) for x in (cache.keys, cache.values))
        scores = lnp.einsum("btkgh,bskh->bkgts", grouped, keys) * self.scale
        capped = lnp.tanh(lnp.astype(scores, "float32") / self.softcap) * self.softcap
        visible = lnp.expand_dims(cache.visible(queries, lengths, window=self.window), 1)
        shifted = lnp.where(visible, capped, -lnp.inf)
        weights = lnp.exp(shifted - lnp.max(shifted, axis=-1, keepdims=True))
        weights = cast(weights / lnp.sum(weights, axis=-1, keepdims=True), query.type.dtype)
        return lnp.reshape(lnp.einsum("bkgts,bskh->btkgh", weights, values), query.shape)


def _turned(cache: KeyValueCache | None, rotation: Rotation) -> KeyValueCache | None:
    """The cache with keys as they are compared with queries."""
    if cache is None or rotation.cached is None:
        return cache
    return KeyValueCache(rotary.rotate(cache.keys, *rotation.cached), cache.values)


class FeedForward(Module):
    """down(activation(gate(x)) · up(x)) (Shazeer 2020)."""

    gate: Linear
    up: Linear
    down: Linear
    activation: str = field(static=True)

    def __init__(self, config: LlamaConfig, *, key: ArrayLike, dtype: Any) -> None:
        hidden, inner, biased = config.hidden_size, config.intermediate_size, config.mlp_bias
        keys = random.split(key, 3)
        self.gate = Linear(hidden, inner, biased, key=keys[0], dtype=dtype)
        self.up = Linear(hidden, inner, biased, key=keys[1], dtype=dtype)
        self.down = Linear(inner, hidden, biased, key=keys[2], dtype=dtype)
        activation_of(config.activation)
        self.activation = config.activation

    def __call__(self, x: ArrayLike) -> Value:
        return self.down(activation_of(self.activation)(self.gate(x)) * self.up(x))


def _feed_forward(
    config: LlamaConfig, layer: int, *, key: ArrayLike, dtype: Any
) -> FeedForward | MixtureOfExperts:
    experts = config.experts_of(layer)
    if experts is None:
        return FeedForward(config, key=key, dtype=dtype)
    return MixtureOfExperts(
        config.hidden_size,
        experts.hidden,
        experts.count,
        experts.k,
        activation=activation_of(config.activation),
        normalize=experts.normalize,
        key=key,
        dtype=dtype,
    )


class Layer(Module):
    """Attention and a feed-forward layer, each added to what it read."""

    attention_norm: Norm
    attention: Attention
    attention_result_norm: Norm | None
    feed_forward_norm: Norm
    feed_forward: FeedForward | MixtureOfExperts
    feed_forward_result_norm: Norm | None

    def __init__(self, config: LlamaConfig, layer: int, *, key: ArrayLike, dtype: Any) -> None:
        for_attention, for_feed_forward = random.split(key)
        hidden, normed = config.hidden_size, config.dialect.normed_results
        self.attention_norm = Norm(hidden, config, dtype)
        self.attention = Attention(config, layer, key=for_attention, dtype=dtype)
        self.attention_result_norm = Norm(hidden, config, dtype) if normed else None
        self.feed_forward_norm = Norm(hidden, config, dtype)
        self.feed_forward = _feed_forward(config, layer, key=for_feed_forward, dtype=dtype)
        self.feed_forward_result_norm = Norm(hidden, config, dtype) if normed else None

    def __call__(
        self, x: Value, rotation: Rotation, cache: KeyValueCache | None = None, lengths: Value | None = None
    ) -> tuple[Value, KeyValueCache | None]:
        mixed, cache = self.attention(self.attention_norm(x), rotation, cache, lengths)
        x = x + (mixed if self.attention_result_norm is None else self.attention_result_norm(mixed))
        fed = self.feed_forward(self.feed_forward_norm(x))
        return x + (fed if self.feed_forward_result_norm is None else self.feed_forward_result_norm(fed)), cache


class Llama(PretrainedModel):
    """A decoder: tokens [B, T] to logits [B, T, vocabulary].

        logits = model(ids)

    With a cache, `extend` computes new tokens only; see lavax.generate. `head` is None if the output layer is the table
    of embeddings.
    """

    embedding: Embedding
    layers: tuple[Layer, ...]
    norm: Norm
    head: Linear | None

    def __init__(self, config: LlamaConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys = random.split(key, config.num_hidden_layers + 2)
        self.config = config
        self.embedding = Embedding(config.vocab_size, config.hidden_size, key=keys[0], dtype=dtype)
        self.layers = tuple(
            Layer(config, layer, key=keys[layer + 1], dtype=dtype) for layer in range(config.num_hidden_layers)
        )
        self.norm = Norm(config.hidden_size, config, dtype)
        sizes = config.hidden_size, config.vocab_size
        self.head = None if config.is_tied else Linear(*sizes, False, key=keys[-1], dtype=dtype)

    def __call__(self, ids: ArrayLike) -> Value:
        return self.logits(self.hidden(ids))

    def hidden(self, ids: ArrayLike) -> Value:
        """The last layer's normed states of tokens [B, T]: [B, T, hidden]."""
        x = self._embedded(ids)
        rotations = self._rotations(lnp.arange(x.shape[1], dtype="int32"))
        for layer, rotation in zip(self.layers, rotations, strict=True):
            x, _ = layer(x, rotation)
        return self.norm(x)

    def logits(self, hidden: ArrayLike) -> Value:
        """The logits of states: [..., hidden] to [..., vocabulary]."""
        found = self.embedding.attend(hidden) if self.head is None else self.head(hidden)
        cap = self.config.final_logit_softcapping
        return found if cap is None else lnp.tanh(found / cap) * cap

    def empty_cache(self, batch: int, length: int, dtype: Any = None) -> DecoderCache:
        """Room for `length` tokens in each row, in the dtype of the weights unless another is given."""
        _, groups, head = self.config.heads
        kind = self.norm.weight.dtype if dtype is None else dtype
        layers = tuple(KeyValueCache.zeros(batch, length, groups, head, kind) for _ in self.layers)
        return DecoderCache(layers, lnp.zeros(batch, "int32"))

    @property
    def takes_counts(self) -> bool:
        """Whether `extend` should be told how many tokens are no padding."""
        return bool(self.config.rotates_by_length)

    def extend(
        self, ids: ArrayLike, cache: DecoderCache, counts: ArrayLike | None = None
    ) -> tuple[Value, DecoderCache]:
        """The states [B, T, hidden] of T more tokens in each row, and the cache with them.

        Rotary frequencies that depend on the length count the first `counts` [B] tokens of each row; the others are
        padding.
        """
        x = self._embedded(ids)
        positions = lnp.expand_dims(cache.lengths, 1) + lnp.arange(x.shape[1], dtype="int32")
        lengths = cache.lengths + (x.shape[1] if counts is None else as_value(counts))
        rotations = self._rotations(positions, lengths, cache.layers[0].length if cache.layers else 0)
        layers = []
        for layer, rotation, held in zip(self.layers, rotations, cache.layers, strict=True):
            x, filled = layer(x, rotation, held, cache.lengths)
            layers.append(held if filled is None else filled)
        return self.norm(x), DecoderCache(tuple(layers), cache.lengths + x.shape[1])

    def _rotations(self, positions: Value, lengths: Value | None = None, room: int = 0) -> Sequence[Rotation]:
        """By what each layer turns queries and keys; layers share what they can.

        `lengths` [B] are the tokens of each row with the new ones, of `room` that a cache has. If frequencies depend on
        them, keys are cached as they were before they turned, and all turn again at every step.
        """
        windows = [layer.attention.window for layer in self.layers]
        if not self.config.rotates_by_length:
            frequencies = {window: self.config.frequencies_of(window) for window in windows}
            made = {window: Rotation(rotary.tables(positions, each)) for window, each in frequencies.items()}
            return [made[window] for window in windows]
        length: Any = positions.shape[0] if lengths is None else lnp.expand_dims(lengths, (1, 2))
        frequencies = {window: self.config.frequencies_of(window, length) for window in windows}
        places = lnp.expand_dims(lnp.arange(room, dtype="int32"), 0)
        made = {
            window: Rotation(rotary.tables(positions, each), rotary.tables(places, each) if room else None)
            for window, each in frequencies.items()
        }
        return [made[window] for window in windows]

    def _embedded(self, ids: ArrayLike) -> Value:
        given = as_value(ids)
        if given.ndim != 2 or not given.type.dtype.is_integer:
            raise shape_error(f"{type(self).__name__}: tokens are integers [B, T], got {given.type}")
        found = self.embedding(given)
        return found * self.config.hidden_size**0.5 if self.config.dialect.offset_norms else found


# The names of everything but the norms, which dialects call differently.
NAMES = (
    (r"^(layers|norm)\.", r"model.\1."),
    (r"^embedding\.", "model.embed_tokens."),
    (r"^head\.", "lm_head."),
    (r"\.attention\.query", ".self_attn.q"),
    (r"\.attention\.key", ".self_attn.k"),
    (r"\.attention\.value", ".self_attn.v"),
    (r"\.attention\.output", ".self_attn.o"),
    (r"(\.self_attn\.[qkvo])\.", r"\1_proj."),
    (r"\.feed_forward\.(gate|up|down)\.", r".mlp.\1_proj."),
    (r"\.attention_norm\.", ".input_layernorm."),
)
OPTIONAL = r"rotary_emb\.inv_freq$|^lm_head\.weight$"
FAMILY = Family(
    LlamaConfig,
    Llama,
    (*NAMES, (r"\.feed_forward_norm\.", ".post_attention_layernorm.")),
    optional=OPTIONAL,
    adapter_task=WRITER,
)
