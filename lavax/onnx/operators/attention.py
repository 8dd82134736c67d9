"""Attention and rotary positions of the standard; the parts are shared with those of com.microsoft."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.elementwise import unsupported_type
from lavax.onnx.operators.operator import Call, Operator, converted, device_dtype
from lavax.onnx.reading.tensors import numpy_dtype


def by_head(x: Any, heads: int) -> Any:
    """[batch, time, heads · size] as [batch, heads, time, size]."""
    return lnp.swapaxes(x.reshape(x.shape[0], x.shape[1], heads, -1), 1, 2)


def joined_heads(x: Any) -> Any:
    """[batch, heads, time, size] as [batch, time, heads · size]."""
    return lnp.reshape(lnp.swapaxes(x, 1, 2), (x.shape[0], x.shape[2], -1))


def window_mask(offset: Any, queries: int, keys: int, left: int, right: int) -> Any:
    """Which keys [.., queries, keys] lie within a window around each query; -1 is no bound. `offset` may be [batch]."""
    place = np.arange(queries, dtype=np.int32)[:, None]
    place = place + (offset if isinstance(offset, int) else converted(offset, "int32").reshape(-1, 1, 1, 1))
    key = np.arange(keys, dtype=np.int32)[None]
    shown: Any = lnp.ones((queries, keys), "bool") if left < 0 and right < 0 else None
    for bound, is_inside in ((left, key >= place - left), (right, key <= place + right)):
        if bound >= 0:
            shown = is_inside if shown is None else shown & is_inside
    return shown


def visible_and_bias(mask: Any, keys: int) -> tuple[Any, Any]:
    """A mask of truth values or floats, [.., keys] or shorter, as (which keys are visible, what is added)."""
    if mask is None:
        return None, None
    missing = keys - mask.shape[-1]
    is_truth = mask.dtype == bool
    if missing > 0:
        fill: Any = False if is_truth else -np.inf
        mask = lnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=fill)
    if is_truth:
        return mask, None
    # A query that sees no key gets 0: -inf hides, it is not added.
    shown = mask > -np.inf
    return shown, lnp.where(shown, mask, 0)


def attend(
    q: Any, k: Any, v: Any, visible: Any, bias: Any, scale: float | None, softcap: float = 0.0
) -> tuple[Any, tuple[Any, ...]]:
    """Attention [batch, heads, time, size]; queries share heads of keys. Also the scores of each stage, if asked.

    One operation where scores are not capped.
    """
    if not softcap:
        query, key, value = (lnp.swapaxes(x, 1, 2) for x in (q, k, v))
        made = nn.dot_product_attention(query, key, value, _of_rank_4(bias), _of_rank_4(visible), scale=scale)
        return lnp.swapaxes(made, 1, 2), ()
    stages = scores(q, k, visible, bias, scale, softcap)
    return converted(lnp.matmul(stages[-1], repeated(v, q.shape[1])), v.dtype), stages


def _of_rank_4(mask: Any) -> Any:
    return None if mask is None else lnp.reshape(mask, (1,) * (4 - mask.ndim) + tuple(mask.shape))


def repeated(x: Any, heads: int) -> Any:
    """Heads of keys or values, each repeated for the queries that share it."""
    return x if x.shape[1] == heads else lnp.repeat(x, heads // x.shape[1], axis=1)


def scores(
    q: Any, k: Any, visible: Any, bias: Any, scale: float | None, softcap: float, precision: Any = None
) -> tuple[Any, ...]:
    """The products of queries and keys, the same capped, with the bias, and as weights."""
    factor = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    root = np.sqrt(factor)
    product = converted(lnp.matmul(q * root, lnp.swapaxes(repeated(k, q.shape[1]) * root, -1, -2)), q.dtype)
    capped = converted(softcap * lnp.tanh(product / softcap), q.dtype) if softcap else product
    biased = capped if bias is None else (capped + bias).astype(q.dtype)
    if visible is None:
        shown, weights = biased, nn.softmax(converted(biased, precision or q.dtype), axis=-1)
    else:
        shown = lnp.where(visible, biased, -np.inf)
        is_seen = lnp.any(lnp.broadcast_to(visible, shown.shape), axis=-1, keepdims=True)
        safe = converted(lnp.where(is_seen, shown, 0), precision or q.dtype)
        weights = lnp.where(is_seen, nn.softmax(safe, axis=-1), 0)
    return product, capped, shown, converted(weights, q.dtype)


def _attention(
    call: Call, q: Any, k: Any, v: Any, mask: Any = None, past_key: Any = None, past_value: Any = None,
    lengths: Any = None,
) -> Any:  # fmt: skip
    is_flat = q.ndim == 3
    if is_flat:
        q, k, v = by_head(q, call.q_num_heads), by_head(k, call.kv_num_heads), by_head(v, call.kv_num_heads)
    if past_key is not None:
        k, v = lnp.concatenate([past_key, k], axis=2), lnp.concatenate([past_value, v], axis=2)
    queries, keys = q.shape[2], k.shape[2]
    offset: Any = 0
    if past_key is not None:
        offset = past_key.shape[2]
    elif lengths is not None:
        offset = lengths - queries
    visible, bias = visible_and_bias(mask, keys)
    right = call.right_window_size
    if call.is_causal:
        right = 0
    if right >= 0 or call.left_window_size >= 0:
        window = window_mask(offset, queries, keys, call.left_window_size, right)
        visible = window if visible is None else visible & window
    if lengths is not None:
        padding = lnp.arange(keys) < converted(lengths, "int32").reshape(-1, 1, 1, 1)
        visible = padding if visible is None else visible & padding
    precision = None
    if call.softmax_precision:
        found = numpy_dtype(call.softmax_precision)
        assert found is not None, "refused while loading"
        precision = device_dtype(found)
    if call.wants(3) or call.softcap or (precision is not None and precision != q.dtype):
        stages = scores(q, k, visible, bias, call.scale, call.softcap, precision)
        made = converted(lnp.matmul(stages[3], repeated(v, q.shape[1])), v.dtype)
    else:
        made, stages = attend(q, k, v, visible, bias, call.scale)
    made = joined_heads(made) if is_flat else made
    return (made, k, v, stages[call.qk_matmul_output_mode] if call.wants(3) else None)[: max(call.outputs, 1)]


def rotated(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """`x` [batch, heads, time, size] turned in its first 2 · n columns by angles [.., time, n]: Su et al. 2021."""
    half = cos.shape[-1]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if interleaved:
        made = lnp.reshape(lnp.stack([real, imaginary], axis=-1), turned.shape)
    else:
        made = lnp.concatenate([real, imaginary], axis=-1)
    return converted(lnp.concatenate([made, rest], axis=-1) if rest.shape[-1] else made, x.dtype)


def _rotary(call: Call, x: Any, cos: Any, sin: Any, places: Any = None) -> Any:
    is_flat = x.ndim == 3
    heads = by_head(x, call.num_heads) if is_flat else x
    if places is not None:
        cos, sin = lnp.take(cos, places, axis=0), lnp.take(sin, places, axis=0)
    half = (call.rotary_embedding_dim or heads.shape[-1]) // 2
    made = rotated(heads, cos[:, None, :, :half], sin[:, None, :, :half], bool(call.interleaved))
    return joined_heads(made) if is_flat else made


OPERATORS = (
    Operator(
        "Attention", _attention,
        {
            "is_causal": 0, "kv_num_heads": None, "left_window_size": -1, "q_num_heads": None,
            "qk_matmul_output_mode": 0, "right_window_size": -1, "scale": None, "softcap": 0.0,
            "softmax_precision": None,
        },
        refuse=lambda node: unsupported_type(node.attributes.get("softmax_precision", 1)),
    ),
    Operator("RotaryEmbedding", _rotary, {"interleaved": 0, "num_heads": 0, "rotary_embedding_dim": 0}),
)  # fmt: skip
