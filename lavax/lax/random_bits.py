"""Random numbers under jax.lax's names."""
from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


class RandomAlgorithm(enum.IntEnum):
    """Generators of bits; all of them are Threefry here."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def rng_bit_generator(
    key: ArrayLike, shape: Sequence[int], dtype: Any = None, algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
    *, out_sharding: Any = None,
) -> tuple[Value, Value]:  # fmt: skip
    """The next key, uint32 [2] or [4] as the one given, and random bits. The bits are lavax's, not XLA's."""
    given = lnp.astype(as_value(key), lnp.uint32)
    folded = given[:2] ^ given[2:] if given.shape == (4,) else given
    following, own = random.split(random.wrap_key_data(folded))
    next_data = random.key_data(following)
    after = lnp.concatenate([next_data, next_data]) if given.shape == (4,) else next_data
    return after, random.bits(own, tuple(shape), dtype)
