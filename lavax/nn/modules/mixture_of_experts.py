"""Feed-forward layers of which each token passes through a few."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.activations import silu
from lavax.nn.functional import one_hot
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.quantized import QuantizedMatrix
from lavax.nn.routing import Routing, route
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["MixtureOfExperts"]


class MixtureOfExperts(Module):
    """`experts` gated feed-forward layers, of which a router chooses `k` for each token: [..., features] to the same.

        layer = nn.MixtureOfExperts(512, 1024, experts=8, k=2, key=key)
        y = layer(x)
        balance = nn.load_balancing_loss(layer.router(x), layer.k)

    Expert e computes down_e·(activation(gate_e·x) ⊙ up_e·x), and results are summed with the router's weights (`route`,
    `normalize`). `gate` and `up` are [experts, hidden, features], `down` [experts, features, hidden]: arrays, or a
    `QuantizedMatrix` each.

    Without a `capacity_factor`, the result is exact: every expert computes every token, and the router's weights leave
    out what it has not chosen; for so few tokens that most experts have none, as in decoding, each token fetches the
    weights of its own instead. With a `capacity_factor`, an expert computes at most
    ceil(capacity_factor · k · tokens / experts) tokens; the first choices of all tokens come before the second ones,
    and a token gets nothing from an expert that is full (Lepikhin et al. 2020, "GShard", section 2.2).
    """

    router: Linear
    gate: Any
    up: Any
    down: Any
    k: int = field(static=True)
    normalize: bool = field(static=True)
    capacity_factor: float | None = field(static=True)
    activation: Callable[[Value], Value] = field(static=True)

    def __init__(
        self,
        features: int,
        hidden: int,
        experts: int,
        k: int,
        *,
        activation: Callable[[Value], Value] = silu,
        normalize: bool = True,
        capacity_factor: float | None = None,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        if not 1 <= k <= experts:
            raise ValueError(f"MixtureOfExperts: {k=} must be between 1 and {experts=}")
        if capacity_factor is not None and not capacity_factor > 0:
            raise ValueError(f"MixtureOfExperts: {capacity_factor=} must be positive, or None for no limit")
        keys = random.split(key, 4)
        inward, outward = max(features, 1) ** -0.5, max(hidden, 1) ** -0.5
        self.router = Linear(features, experts, bias=False, key=keys[0], dtype=dtype)
        self.gate = random.uniform(keys[1], (experts, hidden, features), dtype, -inward, inward)
        self.up = random.uniform(keys[2], (experts, hidden, features), dtype, -inward, inward)
        self.down = random.uniform(keys[3], (experts, features, hidden), dtype, -outward, outward)
        self.k, self.normalize, self.capacity_factor, self.activation = k, normalize, capacity_factor, activation

    def __call__(self, x: ArrayLike) -> Value:
        given = as_value(x)
        if not given.ndim or given.shape[-1] != self.gate.shape[-1]:
            raise shape_error(f"MixtureOfExperts: x is [..., {self.gate.shape[-1]}], got {given.type}")
        tokens = lnp.reshape(given, (-1, given.shape[-1]))
        routing = route(self.router(tokens), self.k, normalize=self.normalize)
        return lnp.reshape(self._evaluation(tokens.shape[0])(tokens, routing), given.shape)

    def _evaluation(self, tokens: int) -> Callable[[Value, Routing], Value]:
        if self.capacity_factor is not None:
            return self._limited
        reads_half = 2 * tokens * self.k <= self.gate.shape[0]  # of the weights, or less
        return self._fetched if reads_half else self._all

    def _all(self, tokens: Value, routing: Routing) -> Value:
        """Every expert's result for every token, summed with weights that are 0 for those not chosen."""
        chosen = one_hot(routing.experts, self.gate.shape[0])
        shares = cast(lnp.sum(chosen * lnp.expand_dims(routing.weights, -1), axis=-2), tokens.type.dtype)
        gated, others = (_contracted("nd,ehd->enh", tokens, weight) for weight in (self.gate, self.up))
        inner = self.activation(gated) * others * lnp.expand_dims(lnp.matrix_transpose(shares), -1)
        return _contracted("enh,edh->nd", inner, self.down)

    def _fetched(self, tokens: Value, routing: Routing) -> Value:
        """Each token's result from copies of the weights of its experts, [tokens, k, ...]."""
        gate, up, down = (_taken(weight, routing.experts) for weight in (self.gate, self.up, self.down))
        gated, others = (_contracted("nd,nkhd->nkh", tokens, weight) for weight in (gate, up))
        shares = cast(routing.weights, tokens.type.dtype)
        return _contracted("nkh,nkdh->nd", self.activation(gated) * others * lnp.expand_dims(shares, -1), down)

    def _limited(self, tokens: Value, routing: Routing) -> Value:
        """Tokens are laid out by expert, [experts, room, features], computed, and fetched back."""
        experts, (count, features) = self.gate.shape[0], tokens.shape
        room = min(count, math.ceil((self.capacity_factor or 0) * self.k * count / experts))
        place = _places(routing.experts, experts, room)
        repeated = lnp.broadcast_to(lnp.expand_dims(tokens, 1), (count, self.k, features))
        empty: Any = lnp.zeros((experts * room, features), tokens.type.dtype)
        by_expert = empty.at[place].set(repeated, mode="drop")
        given = lnp.reshape(by_expert, (experts, room, features))
        gated, others = (_contracted("end,ehd->enh", given, weight) for weight in (self.gate, self.up))
        made = lnp.reshape(_contracted("enh,edh->end", self.activation(gated) * others, self.down), (-1, features))
        weights = cast(lnp.where(place < experts * room, routing.weights, 0.0), tokens.type.dtype)
        fetched = lnp.take(made, lnp.minimum(place, experts * room - 1), axis=0, mode="promise_in_bounds")
        return lnp.sum(fetched * lnp.expand_dims(weights, -1), axis=1)


def _contracted(subscripts: str, x: Value, weight: Any) -> Value:
    """The `einsum` of `x` and matrices over the last axis of both."""
    if isinstance(weight, QuantizedMatrix):
        return weight.contracted(subscripts, x)
    return lnp.einsum(subscripts, x, weight)


def _taken(weight: Any, experts: Value) -> Any:
    """Copies of the matrices of `experts`."""
    if isinstance(weight, QuantizedMatrix):
        return weight.at(experts)
    return lnp.take(weight, experts, axis=0, mode="promise_in_bounds")


def _places(chosen: Value, experts: int, room: int) -> Value:
    """Where each choice [tokens, k] of an expert lies among experts·room places; beyond the last if it is full."""
    in_turn = lnp.ravel(lnp.matrix_transpose(chosen))  # all first choices, then all second ones
    before = lnp.cumsum(one_hot(in_turn, experts, dtype="int32"), axis=0)
    rank = lnp.squeeze(lnp.take_along_axis(before, lnp.expand_dims(in_turn, 1), axis=1), 1) - 1
    place = lnp.where(rank < room, in_turn * room + rank, experts * room)
    return lnp.matrix_transpose(lnp.reshape(place, chosen.shape[::-1]))
