"""Which experts see which tokens, and losses that keep all experts at work."""
from __future__ import annotations

from typing import NamedTuple

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.nn.functional import logsumexp, one_hot, softmax
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.sorting.sorting import top_k
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

__all__ = ["Routing", "load_balancing_loss", "route", "router_z_loss"]


class Routing(NamedTuple):
    """The experts of each token, the likeliest first, and their shares in its result: int32 and float32 [..., k]."""

    experts: Value
    weights: Value


def route(logits: ArrayLike, k: int, *, normalize: bool = True) -> Routing:
    """The `k` experts with the greatest logits [..., E] for each token, weighted by their softmax over all experts.

    With `normalize`, the weights of a token sum to 1, which is the softmax over the chosen ones (Jiang et al. 2024,
    "Mixtral of Experts", section 2.1). Computed in float32. Raises ShapeError if there are fewer than `k` experts.
    """
    shares = softmax(cast(as_value(logits), float32))
    if not 1 <= k <= shares.shape[-1]:
        raise shape_error(f"route: k={k} must be between 1 and the number of experts, {shares.shape[-1]}")
    experts = stop_gradient(top_k(shares, k).indices)
    weights = lnp.take_along_axis(shares, experts, axis=-1, mode="promise_in_bounds")
    return Routing(experts, weights / lnp.sum(weights, axis=-1, keepdims=True) if normalize else weights)


def load_balancing_loss(logits: ArrayLike, k: int, mask: ArrayLike | None = None) -> Value:
    """E · Σ over experts of (the share of tokens that it gets) · (its mean probability), from logits [..., E].

    Fedus et al. 2021, "Switch Transformers", equations 4 to 6, with `k` experts a token: `k` if all get equally many
    tokens, more otherwise. Only the probabilities have gradients. `mask` [...] is true, or not 0, for tokens that
    count. For a model with several layers, give the logits of all: stacked, they count as one.
    """
    given = as_value(logits)
    shares, count = softmax(cast(given, float32)), given.shape[-1]
    chosen = lnp.sum(one_hot(route(given, k).experts, count), axis=-2)
    counts = None if mask is None else lnp.broadcast_to(lnp.expand_dims(as_value(mask) != 0, -1), given.shape)
    axes = tuple(range(given.ndim - 1))
    tokens, probability = (lnp.mean(x, axis=axes, where=counts) for x in (stop_gradient(chosen), shares))
    return count * lnp.sum(tokens * probability)


def router_z_loss(logits: ArrayLike) -> Value:
    """The mean of (log Σ exp(logits))² over tokens, which keeps logits [..., E] small (Zoph et al. 2022, eq. 5)."""
    size = logsumexp(cast(as_value(logits), float32), axis=-1)
    return lnp.mean(size * size)
