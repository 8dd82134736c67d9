"""GroupQueryAttention: attention of grouped queries to a cache, which may be quantised or hold a window only."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.onnx.operators.attention import attend, by_head, joined_heads, rotated, window_mask
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted
from lavax.onnx.operators.quantized import MICROSOFT
from lavax.onnx.reading.graph import Node


@dataclass(frozen=True)
class _Step:
    """Where the tokens of a step lie: their first positions [batch], how many count, and positions [batch, time]."""

    before: Any
    count: Any
    at: Any


def grouped(
    call: Call, q: Any, k: Any, v: Any, past_key: Any, past_value: Any, lengths: Any, total: Any, cos: Any = None,
    sin: Any = None, places: Any = None, added: Any = None, sink: Any = None, k_scale: Any = None,
    v_scale: Any = None, q_norm: Any = None, k_norm: Any = None, counts: Any = None,
) -> Any:  # fmt: skip
    """Ainslie et al. 2023. `lengths` + 1 tokens [batch] are in the cache after this step, `total` at most."""
    q, k, v = _heads(call, q, k, v)
    if q_norm is not None:
        q = _normal(q, q_norm, call.q_norm_epsilon or call.qk_norm_epsilon)
        k = _normal(k, k_norm, call.k_norm_epsilon or call.qk_norm_epsilon)
    held = converted(lengths, "int32").reshape(-1) + 1
    fresh = k.shape[2]
    count = lnp.minimum(held, fresh) if counts is None else converted(counts, "int32").reshape(-1)
    before = held - count
    step = _Step(before, count, before.reshape(-1, 1) + np.arange(fresh, dtype=np.int32))
    if call.do_rotary:
        turn = step.at
        if places is not None and (counts is not None or fresh != call.integers(total, "total_sequence_length")[0]):
            turn = converted(places, "int32")
        angles = lnp.take(cos, turn, axis=0)[:, None], lnp.take(sin, turn, axis=0)[:, None]
        q, k = (rotated(x, *angles, bool(call.rotary_interleaved)) for x in (q, k))
    stores = _store(call, call.k_quant_type, k_scale), _store(call, call.v_quant_type, v_scale)
    new = tuple(store.written(x) for store, x in zip(stores, (k, v), strict=True))
    if call.sliding_window_cache:
        caches, seen, key_place = _slid(call, new, (past_key, past_value), step)
        added = _columns(added, key_place)
        visible = _within(call, step.at, key_place)
    else:
        most = call.integers(total, "total_sequence_length")[0]
        room = max(most, past_key.shape[2] if past_key is not None else 0)
        caches = tuple(_appended(x, old, step, room) for x, old in zip(new, (past_key, past_value), strict=True))
        seen = tuple(cache[:, :, :most] for cache in caches)
        left = call.local_window_size - 1 if call.local_window_size > 0 else -1  # a window counts the query's own key
        visible = window_mask(held - fresh if counts is None else before, q.shape[2], most, left, call.causal - 1)
        visible = visible & (np.arange(most, dtype=np.int32) < held.reshape(-1, 1, 1, 1))
    keys, values = (store.read(x, q.dtype) for store, x in zip(stores, seen, strict=True))
    made = _attended(call, q, keys, values, visible, added, sink)
    return (joined_heads(made), *caches)[: max(call.outputs, 1)]


def _heads(call: Call, q: Any, k: Any, v: Any) -> tuple[Any, Any, Any]:
    heads, groups = call.num_heads, call.kv_num_heads
    if k is None:
        size = q.shape[-1] // (heads + 2 * groups)
        q, k, v = lnp.split(q, [heads * size, (heads + groups) * size], axis=-1)
    return by_head(q, heads), by_head(k, groups), by_head(v, groups)


def _normal(x: Any, weight: Any, epsilon: float) -> Any:
    wide = converted(x, "float32")
    root = lnp.sqrt(lnp.mean(wide * wide, axis=-1, keepdims=True) + epsilon)
    return converted(wide / root * weight, x.dtype)


def _attended(call: Call, q: Any, k: Any, v: Any, visible: Any, bias: Any, sink: Any) -> Any:
    """Attention; a sink is what else the weights of a head sum up to 1 with: a key of zeros, whose bias it is."""
    if sink is None and not call.smooth_softmax > 0:
        return attend(q, k, v, visible, bias, call.scale or None, call.softcap)[0]
    wide = [(0, 0), (0, 0), (0, 1), (0, 0)]
    k, v = lnp.pad(k, wide), lnp.pad(v, wide)
    level: Any = lnp.zeros((1, 1, 1, 1), q.dtype) if sink is None else sink.reshape(1, -1, 1, 1).astype(q.dtype)
    own = lnp.zeros((1, 1, 1, visible.shape[-1]), q.dtype) if bias is None else bias
    lead = np.broadcast_shapes(own.shape[:3], level.shape[:3])
    bias = lnp.concatenate([lnp.broadcast_to(x, (*lead, x.shape[3])) for x in (own, level)], axis=-1)
    visible = lnp.pad(visible, [(0, 0)] * (visible.ndim - 1) + [(0, 1)], constant_values=True)
    return attend(q, k, v, visible, bias, call.scale or None, call.softcap)[0]


@dataclass(frozen=True)
class _Store:
    """How a cache holds numbers: as they are, or in steps of `scale` as integers of 8 or 4 bits, two in a byte."""

    scale: Any
    bits: int

    def written(self, x: Any) -> Any:
        """Numbers as the cache holds them."""
        if self.scale is None:
            return x
        whole = lnp.round(converted(x, "float32") / self.scale)
        if self.bits == 8:
            return converted(converted(lnp.clip(whole, -128, 127), "int32"), "int8")
        nibbles = converted(lnp.clip(whole, -8, 7), "int32") + 8
        return converted(nibbles[..., 0::2] + 16 * nibbles[..., 1::2], "uint8")

    def read(self, cache: Any, dtype: Any) -> Any:
        """The numbers in a cache."""
        if self.scale is None:
            return cache
        whole = converted(cache, "int32")
        if self.bits == 4:
            pairs = lnp.stack([whole & 15, lnp.right_shift(whole, 4)], axis=-1)
            whole = lnp.reshape(pairs, (*whole.shape[:-1], -1)) - 8
        return converted(converted(whole, "float32") * self.scale, dtype)


def _store(call: Call, kind: str, scale: Any) -> _Store:
    if kind == "NONE":
        return _Store(None, 0)
    shape = () if prod(scale.shape) == 1 else (1, call.kv_num_heads, 1, -1)
    return _Store(converted(scale.reshape(shape), "float32"), call.kv_cache_bit_width or 8)


def _appended(new: Any, old: Any, step: _Step, extent: int) -> Any:
    """The cache [batch, heads, extent, size] with `new` written at its positions."""
    batch, heads, _, size = new.shape
    if old is None:
        cache = lnp.zeros((batch, heads, extent, size), new.dtype)
    else:
        cache = lnp.pad(old, [(0, 0), (0, 0), (0, extent - old.shape[2]), (0, 0)])
    is_padding = np.arange(step.at.shape[1], dtype=np.int32) >= step.count.reshape(-1, 1)
    at = lnp.where(is_padding, extent, step.at)  # what lies behind the end is not written
    rows: Any = lnp.swapaxes(cache, 1, 2)
    written = rows.at[lnp.arange(batch)[:, None], at].set(lnp.swapaxes(new, 1, 2), mode="drop")
    return lnp.swapaxes(written, 1, 2)


def _slid(
    call: Call, new: tuple[Any, ...], old: tuple[Any, ...], step: _Step
) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    """A cache of a window: what it holds afterwards, what this step reads, and the positions of that; -1 for none."""
    room, fresh = old[0].shape[2], new[0].shape[2]
    before, count = step.before.reshape(-1, 1), step.count.reshape(-1, 1)
    kept = _resident(before, room, call.local_window_size)
    row = np.arange(room, dtype=np.int32)
    of_old = lnp.where(row < kept, before - kept + row, -1)
    of_new = lnp.where(np.arange(fresh, dtype=np.int32) < count, step.at, -1)
    held = before + count
    stays = _resident(held, room, call.local_window_size)
    place = held - stays + row  # the position in each row afterwards
    source = lnp.where(place >= before, room + place - before, place - (before - kept))
    source = lnp.where(row < stays, source, 0)[:, None, :, None]
    joined = tuple(lnp.concatenate(pair, axis=2) for pair in zip(old, new, strict=True))
    caches = tuple(
        lnp.take_along_axis(each, lnp.broadcast_to(source, (*each.shape[:2], room, each.shape[3])), axis=2)
        for each in joined
    )
    return caches, joined, lnp.concatenate([of_old, of_new], axis=1)


def _resident(held: Any, room: int, window: int) -> Any:
    """How many of the `held` positions are in a cache: it drops as many at once as it has room besides the window."""
    slack = room - window + 1
    return lnp.where(held <= room, held, held - slack * ((held - room + slack - 1) // slack))


def _within(call: Call, place: Any, key_place: Any) -> Any:
    """Which keys each query sees [batch, 1, queries, keys]."""
    query, key = place[:, None, :, None], key_place[:, None, None, :]
    return (key >= 0) & (key <= query) & (key > query - call.local_window_size)


def _columns(added: Any, key_place: Any) -> Any:
    """The columns of a bias, which has one for each position, of the keys that are there."""
    if added is None:
        return None
    at = lnp.maximum(key_place, 0)[:, None, None, :]
    lead = (key_place.shape[0], *added.shape[1:3])
    wide = lnp.broadcast_to(added, (*lead, added.shape[3]))
    return lnp.take_along_axis(wide, lnp.broadcast_to(at, (*lead, at.shape[-1])), axis=3)


_PAST_KEY, _K_SCALE, _V_SCALE = 3, 12, 13  # the places of inputs


def _has(node: Node, place: int) -> bool:
    return len(node.inputs) > place and bool(node.inputs[place])


def _refuse(node: Node) -> str | None:
    if node.attributes.get("qk_output", 0):
        return "qk_output is not supported"
    types = [node.attributes.get(name, "NONE") for name in ("k_quant_type", "v_quant_type")]
    if any(kind not in ("NONE", "PER_TENSOR", "PER_CHANNEL") for kind in types):
        return f"a cache quantised as {', '.join(types)} is not supported"
    if node.attributes.get("kv_cache_bit_width", 0) not in (0, 4, 8):
        return "kv_cache_bit_width must be 4 or 8"
    if any(kind != "NONE" and not _has(node, place) for kind, place in zip(types, (_K_SCALE, _V_SCALE), strict=True)):
        return "a quantised cache needs k_scale and v_scale"
    if node.attributes.get("sliding_window_cache") and (
        not _has(node, _PAST_KEY) or node.attributes.get("local_window_size", -1) < 1
    ):
        return "a cache of a window needs past_key, past_value and local_window_size"
    return None


_ATTRIBUTES = {
    "causal": 1, "do_rotary": 0, "k_norm_epsilon": None, "k_quant_type": "NONE", "kv_cache_bit_width": 0,
    "kv_num_heads": REQUIRED, "local_window_size": -1, "num_heads": REQUIRED, "q_norm_epsilon": None,
    "qk_norm_epsilon": 1e-6, "qk_output": 0, "rotary_interleaved": 0, "scale": 0.0, "sliding_window_cache": 0,
    "smooth_softmax": 0, "softcap": 0.0, "v_quant_type": "NONE",
}  # fmt: skip

OPERATORS = (
    Operator(
        "GroupQueryAttention", grouped, _ATTRIBUTES, known=(6,), domain=MICROSOFT, refuse=_refuse,
        lacking="qk_output, caches of float8",
    ),
)  # fmt: skip
