"""Attention of com.microsoft: with packed projections, and of several heads."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.onnx.operators.attention import attend, by_head, joined_heads, rotated, window_mask
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted
from lavax.onnx.operators.quantized import MICROSOFT
from lavax.onnx.reading.graph import Node


def _padding_bias(call: Call, mask: Any, keys: int) -> Any:
    """What is added to the scores of keys that a mask hides: it counts keys [batch], or has 1 for those to see."""
    if mask is None:
        return None
    if mask.ndim == 1:
        seen = lnp.arange(keys) < converted(mask, "int32").reshape(-1, 1)
    else:
        seen = mask != 0
    shape = (seen.shape[0], 1, 1, keys) if seen.ndim == 2 else (seen.shape[0], 1, *seen.shape[1:])
    return lnp.reshape(lnp.where(seen, 0.0, call.mask_filter_value), shape)


def _total(*parts: Any) -> Any:
    given = [part for part in parts if part is not None]
    return sum(given[1:], given[0]) if given else None


def _causal(call: Call, past: int, queries: int, keys: int) -> Any:
    return window_mask(past, queries, keys, -1, 0) if call.unidirectional else None


def _scale(call: Call) -> float | None:
    return call.scale or None


def attention(
    call: Call, x: Any, w: Any, b: Any = None, mask: Any = None, past: Any = None, added: Any = None,
    past_length: Any = None,
) -> Any:  # fmt: skip
    projected = x @ w if b is None else x @ w + b
    sizes = call.qkv_hidden_sizes or (w.shape[1] // 3,) * 3
    q, k, v = (
        by_head(part, call.num_heads) for part in lnp.split(projected, [sizes[0], sizes[0] + sizes[1]], axis=-1)
    )
    before = 0
    if past is not None:
        before = past.shape[3]
        k, v = lnp.concatenate([past[0], k], axis=2), lnp.concatenate([past[1], v], axis=2)
    keys = k.shape[2]
    bias = _total(_padding_bias(call, mask, keys), added)
    made, _ = attend(q, k, v, _causal(call, before, q.shape[2], keys), bias, _scale(call))
    return (joined_heads(made), lnp.stack([k, v]) if call.wants(1) else None)[: max(call.outputs, 1)]


def _multi_head(
    call: Call, q: Any, k: Any = None, v: Any = None, b: Any = None, mask: Any = None, added: Any = None,
    past_key: Any = None, past_value: Any = None, past_length: Any = None, cache: Any = None,
) -> Any:  # fmt: skip
    heads = call.num_heads
    if q.ndim == 5:  # [batch, time, heads, 3, size]
        q, k, v = (lnp.swapaxes(q[:, :, :, part], 1, 2) for part in range(3))
    else:
        if k is not None and k.ndim == 5:  # keys and values in one
            k, v = (lnp.swapaxes(k[:, :, :, part], 1, 2) for part in range(2))
        if b is not None:
            ends = [q.shape[-1], 2 * q.shape[-1]]
            parts = lnp.split(b, ends)
            q = q + parts[0]
            k, v = (x + part if x.ndim == 3 else x for x, part in zip((k, v), parts[1:], strict=True))
        q, k, v = (by_head(x, heads) if x.ndim == 3 else x for x in (q, k, v))
    before = 0
    if past_key is not None:
        before = past_key.shape[2]
        k, v = lnp.concatenate([past_key, k], axis=2), lnp.concatenate([past_value, v], axis=2)
    keys = k.shape[2]
    bias = _total(_padding_bias(call, mask, keys), added)
    made, _ = attend(q, k, v, _causal(call, before, q.shape[2], keys), bias, _scale(call))
    return (joined_heads(made), k, v)[: max(call.outputs, 1)]


def _rotary(call: Call, x: Any, places: Any, cos: Any, sin: Any) -> Any:
    is_flat = x.ndim == 3
    heads = by_head(x, call.num_heads or x.shape[-1] // (2 * cos.shape[-1])) if is_flat else x
    at = places if places.ndim == 2 else places.reshape(-1, 1) + lnp.arange(heads.shape[2])
    made = _turned(heads, at, cos, sin, bool(call.interleaved))
    return joined_heads(made) if is_flat else made


def _turned(x: Any, at: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """`x` [batch, heads, time, size] turned by the angles of its positions `at` [batch, time]."""
    return rotated(x, lnp.take(cos, at, axis=0)[:, None], lnp.take(sin, at, axis=0)[:, None], interleaved)


def _refuse_attention(node: Node) -> str | None:
    if node.attributes.get("do_rotary") or node.attributes.get("past_present_share_buffer"):
        return "do_rotary and past_present_share_buffer are not supported"
    return None


_COMMON = {"mask_filter_value": -10000.0, "num_heads": REQUIRED, "scale": 0.0, "unidirectional": 0}

OPERATORS = (
    Operator(
        "Attention", attention,
        {
            **_COMMON, "do_rotary": 0, "past_present_share_buffer": 0, "qkv_hidden_sizes": None,
            "rotary_embedding_dim": 0,
        },
        domain=MICROSOFT, refuse=_refuse_attention, lacking="do_rotary and shared buffers",
    ),
    Operator("MultiHeadAttention", _multi_head, _COMMON, domain=MICROSOFT, lacking="cache_indirection"),
    Operator(
        "RotaryEmbedding", _rotary,
        {"interleaved": 0, "is_packed_batching": 0, "num_heads": 0, "rotary_embedding_dim": 0, "scale": 1.0},
        domain=MICROSOFT, lacking="packed batches",
    ),
)  # fmt: skip
