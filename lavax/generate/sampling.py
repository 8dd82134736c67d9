"""The choice of the next token from its logits, on the device."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax import nn, random
from lavax.base.quick_dataclasses import dataclass
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["Sampling", "sample"]


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn. A `temperature` of 0 takes the most likely one; the limits apply in the order given here.

    `repetition_penalty` divides the positive logits of tokens that occurred, and multiplies the negative ones (Keskar
    et al. 2019). `top_k` keeps the k most likely tokens; `top_p` the fewest most likely ones whose probabilities sum to
    at least p (Holtzman et al. 2020); `min_p` those with at least that part of the largest probability (Nguyen et al.
    2024). Raises ValueError for values outside their range.
    """

    temperature: float = 0.0
    repetition_penalty: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        for name, lowest in (("temperature", 0.0), ("top_k", 1), ("top_p", 0.0), ("min_p", 0.0)):
            value = getattr(self, name)
            if value is not None and not value >= lowest:
                raise ValueError(f"generate: {name} must be at least {lowest}, got {value}")
        for name in ("top_p", "min_p"):
            value = getattr(self, name)
            if value is not None and not value <= 1:
                raise ValueError(f"generate: {name} is a probability, at most 1, got {value}")
        if not self.repetition_penalty > 0:
            raise ValueError(f"generate: repetition_penalty must be positive, got {self.repetition_penalty}")


def sample(logits: ArrayLike, keys: ArrayLike, sampling: Sampling, seen: ArrayLike | None = None) -> Value:
    """A token [B] for each row of logits [B, V], drawn with the row's key [B, 2].

    `seen`, bool [B, V], are the tokens that occurred; it is read if there is a repetition penalty.
    """
    scores = lnp.astype(logits, "float32")
    if seen is not None and sampling.repetition_penalty != 1:
        penalty = sampling.repetition_penalty
        scores = lnp.where(seen, lnp.where(scores > 0, scores / penalty, scores * penalty), scores)
    if sampling.temperature == 0:
        return lnp.astype(lnp.argmax(scores, axis=-1), "int32")
    limited = _limited(scores / sampling.temperature, sampling)
    noise = vmap(lambda key: random.gumbel(key, limited.shape[1:]))(as_value(keys))
    return lnp.astype(lnp.argmax(limited + noise, axis=-1), "int32")


def _limited(scores: Value, sampling: Sampling) -> Value:
    """Scores in which the tokens that may not be drawn are -inf."""
    if sampling.top_k is not None and sampling.top_k < scores.shape[-1]:
        least = lnp.top_k(scores, sampling.top_k).values[:, -1:]
        scores = lnp.where(scores < least, -lnp.inf, scores)
    if sampling.top_p is not None and sampling.top_p < 1:
        falling = -lnp.sort(-scores, axis=-1)
        chances = nn.softmax(falling)
        needed = lnp.cumsum(chances, axis=-1) - chances < sampling.top_p  # the sum of those before is too small
        needed = needed | (lnp.arange(needed.shape[-1]) == 0)
        least = lnp.min(lnp.where(needed, falling, lnp.inf), axis=-1, keepdims=True)
        scores = lnp.where(scores < least, -lnp.inf, scores)
    if sampling.min_p is not None and sampling.min_p > 0:
        highest = lnp.max(scores, axis=-1, keepdims=True)
        scores = lnp.where(scores < highest + lnp.log(sampling.min_p), -lnp.inf, scores)
    return scores
