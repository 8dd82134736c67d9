"""SmolVLA's action expert: a robot's next actions, by flow matching, from the memory of a vision-language model."""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.smolvla.config import SmolVLAConfig
from lavax.models.tensors import Tensors
from lavax.nn import rotary
from lavax.nn.activations import silu
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import RMSNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value


class Prefix(NamedTuple):
    """Keys and values of the prefix as the layers of the expert read them: [B, S, kv heads, H], a pair a layer.

    `visible` [B, S] is false where the prefix is padded; None if nowhere.
    """

    keys: tuple[Any, ...]
    values: tuple[Any, ...]
    visible: Any = None


class _Positions(NamedTuple):
    """Cosines and sines of the actions' positions: after the prefix, and from 0."""

    after_prefix: tuple[Value, Value]
    from_zero: tuple[Value, Value]


class ExpertLayer(Module):
    """A Llama block of the expert. Its actions see the prefix and earlier actions, or, in a cross layer, the prefix."""

    norm1: RMSNorm
    query: Linear
    key: Linear
    value: Linear
    out: Linear
    norm2: RMSNorm
    gate: Linear
    up: Linear
    down: Linear
    crosses: bool = field(static=True)
    heads: tuple[int, int] = field(static=True)  # of queries, and of keys and values

    def __init__(self, config: SmolVLAConfig, crosses: bool, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys = iter(random.split(key, 7))

        def linear(before: int, after: int) -> Linear:
            return Linear(before, after, bias=False, key=next(keys), dtype=dtype)

        hidden, inner = config.hidden_size, config.intermediate_size
        of_queries = config.num_attention_heads * config.head_dim
        of_keys = config.num_key_value_heads * config.head_dim
        self.crosses = crosses
        self.heads = (config.num_attention_heads, config.num_key_value_heads)
        self.norm1, self.norm2 = (RMSNorm(hidden, config.rms_norm_eps, dtype=dtype) for _ in range(2))
        self.query = linear(hidden, of_queries)
        self.key, self.value = (linear(of_keys if crosses else hidden, of_keys) for _ in range(2))
        self.out = linear(of_queries, hidden)
        self.gate, self.up, self.down = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def prefix(self, keys: ArrayLike, values: ArrayLike) -> tuple[Value, Value]:
        """The model's keys and values [B, S, kv heads, H] as this layer reads them: a cross layer projects them."""
        dtype = as_value(self.norm1.weight).type.dtype
        given = cast(as_value(keys), dtype), cast(as_value(values), dtype)
        if not self.crosses:
            return given
        made = [layer(_joined(each)) for layer, each in zip((self.key, self.value), given, strict=True)]
        return self._by_head(made[0], 1), self._by_head(made[1], 1)

    def __call__(self, x: Value, positions: _Positions, keys: Value, values: Value, visible: Value | None) -> Value:
        normal = self.norm1(x)
        query, count, before = self._by_head(self.query(normal), 0), x.shape[1], keys.shape[1]
        if self.crosses:
            seen = dot_product_attention(rotary.rotate(query, *positions.from_zero), keys, values, mask=_mask(visible))
        else:
            turned = rotary.rotate(self._by_head(self.key(normal), 1), *positions.after_prefix)
            seen = dot_product_attention(
                rotary.rotate(query, *positions.after_prefix),
                lnp.concatenate([keys, turned], axis=1),
                lnp.concatenate([values, self._by_head(self.value(normal), 1)], axis=1),
                mask=_mask(visible, count),
                local_window_size=(before + count, before),  # action i sees the prefix and actions up to i
            )
        x = x + self.out(_joined(seen))
        normal = self.norm2(x)
        return x + self.down(silu(self.gate(normal)) * self.up(normal))

    def _by_head(self, x: Value, which: int) -> Value:
        return lnp.reshape(x, (*x.shape[:-1], self.heads[which], -1))


def _parts_of_turns(times: Value, frequencies: np.ndarray) -> Value:
    """times·frequencies less the nearest whole number, for times of at most 1, to the last places of float32.

    The product itself may be hundreds of turns. So both factors are split in two, where the product of the first parts
    is exact: 13 and 11 binary digits.
    """
    exponents = 2.0 ** np.ceil(np.log2(frequencies))
    first = np.round(frequencies / exponents * 2**11) / 2**11 * exponents
    rest = (frequencies - first).astype(np.float32)
    coarse = lnp.round(times * 2**12) / 2**12
    exact = coarse * first.astype(np.float32)
    made: Value = exact - lnp.round(exact) + (coarse * rest + (times - coarse) * frequencies.astype(np.float32))
    return made


def _joined(x: Value) -> Value:
    return lnp.reshape(x, (*x.shape[:-2], -1))


def _mask(visible: Value | None, actions: int = 0) -> Value | None:
    """[B, 1, 1, S + actions]: the visible part of the prefix, and all actions."""
    if visible is None:
        return None
    shown = lnp.ones((visible.shape[0], actions), bool)
    return lnp.concatenate([visible, shown], axis=1)[:, None, None, :]


class SmolVLA(PretrainedModel):
    """The action expert of SmolVLA (Shukor et al. 2025), without the vision-language model that it reads.

        prefix = model.prefix(keys, values)              # once for an observation
        velocity = model(actions, times, prefix)         # at each step of the denoising
        actions = smolvla.denoising()(model, noise, prefix)

    `keys` and `values` are what the layers of the vision-language model keep of images, instruction and state, rotated
    by their positions: for each layer [B, S, kv heads, H]. Noisy `actions` are [B, T, max_action_dim], with T at most
    `chunk_size`, and `times` [B] or a number, from 1 (noise) to 0; the velocity has the shape and dtype of the
    actions, whatever that of the weights is. `state` makes the token of the robot's state, [B, max_state_dim] to
    [B, vlm_hidden_size].
    """

    state: Linear
    action_in: Linear
    time_in: Linear
    time_out: Linear
    layers: tuple[ExpertLayer, ...]
    norm: RMSNorm
    action_out: Linear

    def __init__(self, config: SmolVLAConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys, hidden = random.split(key, 6), config.hidden_size
        self.config = config
        self.state = Linear(config.max_state_dim, config.vlm_hidden_size, key=keys[0], dtype=dtype)
        self.action_in = Linear(config.max_action_dim, hidden, key=keys[1], dtype=dtype)
        self.time_in = Linear(2 * hidden, hidden, key=keys[2], dtype=dtype)
        self.time_out = Linear(hidden, hidden, key=keys[3], dtype=dtype)
        self.layers = tuple(
            ExpertLayer(config, not config.attends_to_itself(index), key=each, dtype=dtype)
            for index, each in enumerate(random.split(keys[4], config.num_vlm_layers))
        )
        self.norm = RMSNorm(hidden, config.rms_norm_eps, dtype=dtype)
        self.action_out = Linear(hidden, config.max_action_dim, key=keys[5], dtype=dtype)

    def prefix(
        self, keys: Sequence[ArrayLike], values: Sequence[ArrayLike], visible: ArrayLike | None = None
    ) -> Prefix:
        """What all steps of a denoising read of the prefix: keys and values for each layer, projected once."""
        if len(keys) != len(self.layers) or len(values) != len(self.layers):
            raise ValueError(
                f"SmolVLA.prefix: keys and values for each of {len(self.layers)} layers, "
                f"got {len(keys)} and {len(values)}"
            )
        pairs = [layer.prefix(*pair) for layer, *pair in zip(self.layers, keys, values, strict=True)]
        return Prefix(tuple(key for key, _ in pairs), tuple(value for _, value in pairs), visible)

    def __call__(self, actions: ArrayLike, times: ArrayLike, prefix: Prefix) -> Value:
        given, config, dtype = as_value(actions), self.config, as_value(self.norm.weight).type.dtype
        if given.ndim != 3 or given.shape[1] > config.chunk_size or given.shape[2] != config.max_action_dim:
            raise shape_error(
                f"SmolVLA: actions are [B, T, {config.max_action_dim}] with T at most {config.chunk_size}, "
                f"got {given.type}"
            )
        count, length, _ = given.shape
        visible = None if prefix.visible is None else as_value(prefix.visible)
        positions = self._positions(count, length, as_value(prefix.keys[0]).shape[1], visible)
        x = self._embedded(cast(given, dtype), lnp.broadcast_to(as_value(times), (count,)))
        for layer, keys, values in zip(self.layers, prefix.keys, prefix.values, strict=True):
            x = layer(x, positions, as_value(keys), as_value(values), visible)
        return cast(self.action_out(self.norm(x)), given.type.dtype)

    def _embedded(self, actions: Value, times: Value) -> Value:
        """Each action with the time, mixed by two linear layers: [B, T, hidden]."""
        of_actions = self.action_in(actions)
        of_time = lnp.expand_dims(cast(self._time_embedding(times), actions.type.dtype), 1)
        both = lnp.concatenate([of_actions, lnp.broadcast_to(of_time, of_actions.shape)], axis=-1)
        return self.time_out(silu(self.time_in(both)))

    def _time_embedding(self, times: Value) -> Value:
        """Sines and cosines of `times` [B], with periods from `min_period` to `max_period`: float32 [B, hidden]."""
        config = self.config
        periods = np.geomspace(config.min_period, config.max_period, config.hidden_size // 2)
        angles = 2 * math.pi * _parts_of_turns(lnp.expand_dims(cast(times, float32), 1), 1 / periods)
        return lnp.concatenate([lnp.sin(angles), lnp.cos(angles)], axis=-1)

    def _positions(self, count: int, length: int, before: int, visible: Value | None) -> _Positions:
        """Actions follow the visible part of the prefix; queries of cross layers are counted from 0."""
        turning = rotary.frequencies(self.config.head_dim)
        steps = lnp.arange(length, dtype="int32")
        begin = before if visible is None else lnp.sum(cast(visible, steps.type.dtype), axis=1, keepdims=True)
        return _Positions(rotary.tables(begin + steps, turning), rotary.tables(steps, turning))


def _prepared(tensors: Tensors, config: SmolVLAConfig) -> Tensors:
    """The expert's tensors; files that are written by a compiled model have names of their own."""
    renamed = {name.replace("model._orig_mod.", "model."): name for name in tensors}
    return {new: tensors[name] for new, name in renamed.items() if not re.search(_OF_OTHERS, new)}


# Of the vision-language model, and statistics of the data.
_OF_OTHERS = r"^model\.vlm_with_expert\.vlm\.|^(un)?normalize_|^buffer_"
_EXPERT = "model.vlm_with_expert.lm_expert."
FAMILY = Family(
    SmolVLAConfig,
    SmolVLA,
    (
        (r"^action_(in|out)\.", r"model.action_\1_proj."),
        (r"^time_(in|out)\.", r"model.action_time_mlp_\1."),
        (r"^state\.", "model.state_proj."),
        (r"^(layers|norm)\.", rf"{_EXPERT}\1."),
        (r"\.norm1\.", ".input_layernorm."),
        (r"\.norm2\.", ".post_attention_layernorm."),
        (r"\.(q|k|v|o)(?:uery|ey|alue|ut)\.weight$", r".self_attn.\1_proj.weight"),
        (r"\.(gate|up|down)\.", r".mlp.\1_proj."),
    ),
    prepared=_prepared,
)
