"""Keys, and the blocks of Threefry that everything is drawn from."""
from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from lavax.ir.types import TensorType, uint32
from lavax.numpy.broadcasting import spread
from lavax.numpy.errors import dtype_error, shape_error
from lavax.numpy.indexing import index
from lavax.numpy.joining import stack
from lavax.numpy.manipulation import as_shape, reshaped
from lavax.numpy.operands import ArrayLike, Splat, as_value, cast, constant_of
from lavax.random.reuse import consume
from lavax.tracer import bind, lift
from lavax.tracer.value import Value

FIRST, SECOND, BOTH = 0, 1, 2  # which word of a block: `threefry`'s attribute


def key(seed: int | ArrayLike) -> Value:
    """The key of `seed`, an integer of which the low 32 bits count, or an integer array of rank 0: uint32 [2]."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return lift(np.array([0, operator.index(seed) % 2**32], np.uint32))
    low = word_of("key", seed, "seed")
    return stack([constant_of(Splat(0, uint32, weak=False), low.type), low])


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Value:
    """New keys that have nothing in common with each other or with `key`: uint32 [*num, 2].

    Raises ShapeError for a negative number of keys, and as all functions here for what is no key.
    """
    shape = result_shape("split", num)
    held = as_key("split", key)
    consume("split", key)
    count = positions(shape)
    return stack([block(held, count, word) for word in (FIRST, SECOND)], axis=-1)


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Value:
    """A new key made of `key` and `data`, an integer or an integer array of rank 0: uint32 [2].

    A negative integer counts as its 32 bits.
    """
    held = as_key("fold_in", key)
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        low: Value = constant_of(Splat(operator.index(data) % 2**32, uint32, weak=False), TensorType((), uint32))
    else:
        low = word_of("fold_in", data, "data")
    return stack([block(held, low, word) for word in (FIRST, SECOND)])


def as_key(name: str, key: ArrayLike) -> Value:
    """`key` as a value, checked; `name` is the function it was given to."""
    value = as_value(key)
    if value.type.dtype != uint32:
        raise dtype_error(f"{name}: a key is a uint32 array of shape (2,) from lavax.random.key, got {value.type}")
    if value.shape != (2,):
        raise shape_error(
            f"{name}: takes one key of shape (2,), got {value.type}; for an array of keys use lavax.vmap"
        )
    return value


def word_of(name: str, x: ArrayLike, argument: str) -> Value:
    """The 32 bits of an integer scalar."""
    value = as_value(x)
    if not value.type.dtype.is_integer:
        raise dtype_error(f"{name}: {argument} must be an integer, got {value.type}")
    if value.shape:
        raise shape_error(f"{name}: {argument} must be one integer, got {value.type}")
    return cast(value, uint32)


def result_shape(name: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple. Raises ShapeError where an extent is negative."""
    extents = as_shape(shape)
    if min(extents, default=0) < 0:
        raise shape_error(f"{name}: a shape has no negative extents, got {extents}")
    return extents


def positions(shape: tuple[int, ...]) -> Value:
    """The counter of each element of an array of this shape: its row-major position, uint32."""
    count = TensorType(shape, uint32).size
    return reshaped(bind("iota", type=TensorType((count,), uint32), axis=0), shape)


def block(key: Value, counter: Value, word: int) -> Value:
    """For each counter below 2^32 a word of its Threefry block: FIRST, SECOND or BOTH of them by xor."""
    words = [spread(index(key, place), counter.shape) for place in range(2)]
    zero = constant_of(Splat(0, uint32, weak=False), counter.type)
    return bind("threefry", *words, zero, counter, word=word)
