"""Attention with its projections, as a layer."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn import rotary as rotary_functions
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.cache import KeyValueCache
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import RMSNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["MultiHeadAttention"]

Tables = tuple[Any, Any]


class MultiHeadAttention(Module):
    """Attention of several heads (Vaswani et al. 2017), with projections of queries, keys, values and the result.

        attention = nn.MultiHeadAttention(512, 8, is_causal=True, key=key)
        y = attention(x)                                       # self-attention, [B, T, 512] or [T, 512]
        y = attention(x, context)                              # cross-attention to [B, S, key_features]
        y, cache = attention(x, cache=cache, lengths=lengths)  # T more tokens of each row

    `kv_heads` heads of keys and values are shared by groups of query heads (Ainslie et al. 2023); `head_dim` is
    features / heads by default. Keys and values come from `key_features` and `value_features`, by default `features`.
    With `is_causal` a query sees the keys up to its own position, with `window` only so many of them, its own among
    them, and as many after it if not causal. `rope_theta` turns queries and keys by their positions (`nn.rotary`, in
    the layout "half"). `qk_norm` normalises each head's queries and keys with learned weights (Henry et al. 2020).
    `scale` multiplies scores, by default 1 / √head_dim.
    """

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    query_norm: RMSNorm | None
    key_norm: RMSNorm | None
    heads: int = field(static=True)
    kv_heads: int = field(static=True)
    head: int = field(static=True)
    is_causal: bool = field(static=True)
    window: int | None = field(static=True)
    rope_theta: float | None = field(static=True)
    scale: float | None = field(static=True)

    def __init__(
        self,
        features: int,
        heads: int,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        *,
        key_features: int | None = None,
        value_features: int | None = None,
        out_features: int | None = None,
        bias: bool = True,
        out_bias: bool | None = None,
        is_causal: bool = False,
        window: int | None = None,
        rope_theta: float | None = None,
        qk_norm: bool = False,
        scale: float | None = None,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        groups = heads if kv_heads is None else kv_heads
        if heads < 1 or groups < 1 or heads % groups:
            raise ValueError(f"MultiHeadAttention: heads={heads} must divide by kv_heads={groups}")
        if head_dim is None and features % heads:
            raise ValueError(f"MultiHeadAttention: {features=} do not divide by {heads=}; give head_dim")
        if window is not None and window < 1:
            raise ValueError(f"MultiHeadAttention: a query sees its own key, so window is at least 1, got {window}")
        head = features // heads if head_dim is None else head_dim
        keys = random.split(key, 4)
        of_keys = features if key_features is None else key_features
        of_values = of_keys if value_features is None else value_features
        self.query = Linear(features, heads * head, bias, key=keys[0], dtype=dtype)
        self.key = Linear(of_keys, groups * head, bias, key=keys[1], dtype=dtype)
        self.value = Linear(of_values, groups * head, bias, key=keys[2], dtype=dtype)
        last = features if out_features is None else out_features
        self.out = Linear(heads * head, last, bias if out_bias is None else out_bias, key=keys[3], dtype=dtype)
        self.query_norm = RMSNorm(head, dtype=dtype) if qk_norm else None
        self.key_norm = RMSNorm(head, dtype=dtype) if qk_norm else None
        self.heads, self.kv_heads, self.head = heads, groups, head
        self.is_causal, self.window = is_causal, window
        self.rope_theta, self.scale = rope_theta, scale

    def empty_cache(self, batch: int, length: int, dtype: Any = None) -> KeyValueCache:
        """Room for `length` keys and values in each of `batch` rows, by default in the dtype of a `Linear` that makes
        keys, and in float32 if another layer does."""
        layer: Any = self.key  # a quantised or an adapted one may stand in its place
        held = layer.weight.dtype if isinstance(layer, Linear) else "float32"
        return KeyValueCache.zeros(batch, length, self.kv_heads, self.head, held if dtype is None else dtype)

    def __call__(
        self,
        x: ArrayLike,
        context: ArrayLike | None = None,
        values: ArrayLike | None = None,
        *,
        mask: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        key_lengths: ArrayLike | None = None,
        rotary: Tables | None = None,
        cache: KeyValueCache | None = None,
        lengths: ArrayLike | None = None,
    ) -> Any:
        """Attention of `x` [B, T, features] to `context` [B, S, key_features], by default to `x` itself.

        Values come from `values`, by default from the context. `mask` (true: visible) and `bias`, which is added to
        scores, broadcast to [B, heads, T, S]; keys from `key_lengths` [B] on are hidden. `rotary` are cosines and sines
        [..., T, pairs] of `nn.rotary.tables` in place of those of `rope_theta`. With a `cache` that holds `lengths` [B]
        keys in its rows, those of `x` are appended, each query sees the keys up to its own, and the result is a pair
        with the new cache. Raises ShapeError or ValueError for arguments that do not fit.
        """
        given = as_value(x)
        if given.ndim not in (2, 3) or (cache is not None and given.ndim != 3):
            raise shape_error(f"MultiHeadAttention: x is [B, T, features], or [T, features] uncached, got {given.type}")
        if cache is not None and (context is not None or lengths is None or key_lengths is not None):
            raise ValueError("MultiHeadAttention: a cache is for self-attention, and needs the lengths of its rows")
        source = given if context is None else as_value(context)
        queries = self._heads(self.query(given), self.heads, self.query_norm)
        keys = self._heads(self.key(source), self.kv_heads, self.key_norm)
        shown = self._heads(self.value(source if values is None else values), self.kv_heads, None)
        if rotary is not None or self.rope_theta is not None:
            queries, keys = self._turned(queries, keys, rotary, lengths)
        if cache is None:
            made = dot_product_attention(
                queries,
                keys,
                shown,
                bias,
                mask,
                scale=self.scale,
                is_causal=self.is_causal,
                key_value_seq_lengths=key_lengths,
                local_window_size=None if self.window is None else self.window - 1,
            )
            return self._projected(made)
        filled = cache.append(keys, shown, lengths)  # type: ignore[arg-type]
        visible = filled.visible(given.shape[1], lengths, window=self.window)  # type: ignore[arg-type]
        dtype = queries.type.dtype
        made = dot_product_attention(
            queries,
            cast(as_value(filled.keys), dtype),
            cast(as_value(filled.values), dtype),
            bias,
            visible if mask is None else lnp.logical_and(visible, mask),
            scale=self.scale,
        )
        return self._projected(made), filled

    def _heads(self, projected: Value, heads: int, norm: RMSNorm | None) -> Value:
        """[..., T, heads, H]."""
        split = lnp.reshape(projected, (*projected.shape[:-1], heads, projected.shape[-1] // heads))
        return split if norm is None else norm(split)

    def _projected(self, made: Value) -> Value:
        return self.out(lnp.reshape(made, (*made.shape[:-2], made.shape[-2] * made.shape[-1])))

    def _turned(
        self, queries: Value, keys: Value, tables: Tables | None, lengths: ArrayLike | None
    ) -> tuple[Value, Value]:
        if tables is not None:
            return tuple(rotary_functions.rotate(each, *tables) for each in (queries, keys))  # type: ignore[return-value]
        frequencies = rotary_functions.frequencies(queries.shape[-1], self.rope_theta)
        turned = []
        for each in (queries, keys):
            positions = lnp.arange(each.shape[-3], dtype="int32")
            if lengths is not None:
                positions = lnp.expand_dims(lengths, 1) + positions
            turned.append(rotary_functions.rotate(each, *rotary_functions.tables(positions, frequencies)))
        return turned[0], turned[1]
