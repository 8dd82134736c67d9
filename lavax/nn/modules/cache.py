"""The keys and values that attention has seen, so that each new token computes only its own."""
from __future__ import annotations

from typing import Any, Self

import lavax.numpy as lnp
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.module import Module
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["KeyValueCache"]

_FEW = 32  # new tokens that are scattered, so that nothing else is written; more would have to be sorted first


class KeyValueCache(Module):
    """Room for S keys and values per row of a batch: `keys` [B, S, K, H], `values` [B, S, K, E].

    How many are filled is not known here but to the model, which counts them once for all its layers: `lengths`, int32
    [B]. A donated cache is updated in place: only new rows are written.
    """

    keys: Any
    values: Any

    @classmethod
    def zeros(cls, batch: int, length: int, heads: int, head: int, dtype: Any = "float32") -> Self:
        """An empty cache, for values of the same size as keys."""
        shape = (batch, length, heads, head)
        return cls(lnp.zeros(shape, dtype), lnp.zeros(shape, dtype))

    @property
    def length(self) -> int:
        """The number of keys that a row has room for."""
        return int(self.keys.shape[1])

    def append(self, keys: ArrayLike, values: ArrayLike, lengths: ArrayLike) -> KeyValueCache:
        """The cache with T more keys and values [B, T, K, H], from position `lengths` [B] on in each row.

        What has no room is lost. Raises ShapeError if the keys have other heads than the cache.
        """
        given = as_value(keys)
        batch, _, heads, head = self.keys.shape
        if given.ndim != 4 or (given.shape[0], *given.shape[2:]) != (batch, heads, head):
            raise shape_error(f"KeyValueCache.append: keys [{batch}, T, {heads}, {head}], got {given.type}")
        return KeyValueCache(_with_rows(self.keys, keys, lengths), _with_rows(self.values, values, lengths))

    def attend(
        self, query: ArrayLike, lengths: ArrayLike, *, window: int | None = None, scale: float | None = None
    ) -> Value:
        """Attention of T queries [B, T, N, H], from position `lengths` [B] on, to the keys up to their own position.

        With a `window`, the last so many keys, its own among them. The result is [B, T, N, E].
        """
        given = as_value(query)
        return dot_product_attention(
            given,
            cast(as_value(self.keys), given.type.dtype),
            cast(as_value(self.values), given.type.dtype),
            mask=self.visible(given.shape[1], lengths, window=window),
            scale=scale,
        )

    def visible(self, queries: int, lengths: ArrayLike, *, window: int | None = None) -> Value:
        """Which keys each of T queries sees, [B, 1, T, S]: those up to its own position."""
        own = lnp.expand_dims(lengths, 1) + lnp.arange(queries, dtype="int32")
        position = lnp.arange(self.length, dtype="int32")
        own = lnp.expand_dims(own, (1, 3))
        seen = position <= own
        return seen if window is None else seen & (position > own - window)


def _with_rows(held: ArrayLike, new: ArrayLike, lengths: ArrayLike) -> Value:
    """`held` [B, S, K, H] with T rows of `new` in each batch entry, from position `lengths` [B] on."""
    array: Any = as_value(held)
    updates, count = cast(as_value(new), array.type.dtype), as_value(new).shape[1]
    first = lnp.expand_dims(lengths, 1)
    if count <= _FEW:
        entries = lnp.expand_dims(lnp.arange(array.shape[0], dtype="int32"), 1)
        written: Value = array.at[entries, first + lnp.arange(count, dtype="int32")].set(updates)
        return written
    source: Value = lnp.expand_dims(lnp.arange(array.shape[1], dtype="int32") - first, (2, 3))
    moved = lnp.take_along_axis(updates, lnp.clip(source, 0, count - 1), axis=1, mode="promise_in_bounds")
    found: Value = lnp.where((source >= 0) & (source < count), moved, array)
    return found
