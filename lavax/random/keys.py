"""Keys, and the Threefry blocks from which everything is drawn."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.config import keeps_64_bits
from lavax.base.errors import DtypeError
from lavax.ir.types import DType, TensorType, uint32
from lavax.numpy._core.broadcasting import spread
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, cast, constant_of, own, splat
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.arrays.joining import stack
from lavax.numpy.indexing.indexing import index
from lavax.random.reuse import consume
from lavax.tracer import bind, constant, lift
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.key_array import GENERATOR, KEY, KeyArray
from lavax.tracer.values.value import Value

FIRST, SECOND, BOTH = 0, 1, 2  # which word of a block: `threefry`'s attribute


def key(seed: int | ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Value:
    """The key of `seed`, an integer or an integer array of rank 0: an array of no axes, of the dtype key<fry>.

    Of a seed the low 32 bits count, and within `lavax.enable_x64` all 64 bits.

    Random bits are those of Threefry 2x32: `impl` or `dtype` is "threefry2x32" or None, or `dtype` that of another key.
    Raises ValueError for another, and for both.
    """
    _require_generator("key", impl, dtype)
    return KeyArray(_words_of_seed("key", seed))


def PRNGKey(seed: int | ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Value:  # noqa: N802 – JAX's name
    """The words of `key(seed)`, uint32 [2], which all functions take for a key."""
    _require_generator("PRNGKey", impl, dtype)
    return _words_of_seed("PRNGKey", seed)


def _words_of_seed(name: str, seed: int | ArrayLike) -> Value:
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        high, low = divmod(operator.index(seed) % 2**_bits_of_seed(seed), 2**32)
        return lift(np.array([high, low], np.uint32))
    low = word_of(name, seed, "seed")
    value = as_value(seed)
    if keeps_64_bits() and value.type.dtype.bits == 64:
        return stack([cast(bind("shift_right_logical", value, constant(32, value.type)), uint32), low])
    return stack([constant_of(splat(0, uint32), low.type), low])


def _bits_of_seed(seed: int | np.integer[Any]) -> int:
    """How many bits of a known number make its key."""
    return 64 if keeps_64_bits() and (isinstance(seed, int) or seed.dtype.itemsize == 8) else 32


def key_dtype(impl_spec: str | None = None) -> Any:
    """The dtype of keys. Raises ValueError for another generator than "threefry2x32"."""
    _require_generator("key_dtype", impl_spec, None)
    return KEY


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Value:
    """New keys that are independent of each other and of `key`: of the shape `num`, or uint32 [*num, 2] if `key` is.

    Raises ShapeError for a negative number of keys and, as all functions here, errors for anything but keys.
    """
    return _like(key, _split(key, num))


@one_program("num")
def _split(key: ArrayLike, num: int | Sequence[int]) -> Value:
    shape = checked_shape("split", num)
    held = as_key("split", key)
    consume("split", key)
    count = positions(shape)
    return stack([block(held, count, word) for word in (FIRST, SECOND)], axis=-1)


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Value:
    """A new key made of `key` and `data`, an integer or an integer array of rank 0.

    A negative integer counts as its 32 bits.
    """
    if isinstance(data, (int, np.integer)) and not isinstance(data, bool):
        data = np.uint32(operator.index(data) % 2**32)
    return _like(key, _folded(key, data))


@one_program()
def _folded(key: ArrayLike, data: ArrayLike) -> Value:
    held = as_key("fold_in", key)
    low = word_of("fold_in", data, "data")
    return stack([block(held, low, word) for word in (FIRST, SECOND)])


def clone(key: ArrayLike) -> Value:
    """The same key or keys, from which may be drawn once more when key reuse is checked."""
    held = _words("clone", key)
    return _like(key, bind("reshape", held, type=held.type))


def _like(key: ArrayLike, words: Value) -> Value:
    """Keys of these words if `key` is an array of keys, else the words."""
    return KeyArray(words) if isinstance(key, KeyArray) else words


def key_data(keys: ArrayLike) -> Value:
    """The words of keys, uint32 [..., 2], in an array of their own. Raises as `wrap_key_data` for what are no keys."""
    return own(_words("key_data", keys))


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Value:
    """The keys of words, uint32 [..., 2]. Raises DtypeError or ShapeError for others, ValueError for another generator.

    `impl` and `dtype` are those of `key`.
    """
    _require_generator("wrap_key_data", impl, dtype)
    return KeyArray(own(_words("wrap_key_data", key_bits_array)))


def _words(name: str, keys: ArrayLike) -> Value:
    value = as_value(keys.words if isinstance(keys, KeyArray) else keys)
    if value.type.dtype != uint32:
        raise dtype_error(f"{name}: the words of keys are uint32, got {value.type}")
    if value.shape[-1:] != (2,):
        raise shape_error(f"{name}: a key has two words along the last axis, got {value.type}")
    return value


def _require_generator(name: str, impl: str | None, dtype: Any) -> None:
    if impl is not None and dtype is not None:
        raise ValueError(f"{name}: pass impl or dtype, not both: they mean the same")
    if impl not in (None, GENERATOR):
        raise ValueError(f"{name}: impl must be {GENERATOR!r}, the one generator, got {impl!r}")
    if dtype is None or dtype == KEY or (isinstance(dtype, str) and dtype == GENERATOR):
        return
    try:
        known = canonical_dtype(dtype) == uint32  # the dtype of their words
    except (DtypeError, TypeError):
        known = False
    if not known:
        raise ValueError(f"{name}: dtype is {GENERATOR!r} or the dtype of a key, {KEY} or uint32, got {dtype!r}")


def key_impl(keys: ArrayLike) -> str:
    """The name of the generator of the keys."""
    _words("key_impl", keys)
    return GENERATOR


def as_key(name: str, key: ArrayLike) -> Value:
    """The words of `key`, checked; `name` is the function it was passed to. Raises DtypeError for anything but keys."""
    value = as_value(key.words if isinstance(key, KeyArray) else key)
    if value.type.dtype != uint32:
        raise dtype_error(f"{name}: a key is an array from lavax.random.key, or its words, got {value.type}")
    if value.shape != (2,):
        raise shape_error(
            f"{name}: takes one key, or its words of shape (2,), got {value.type}; for an array of keys use lavax.vmap"
        )
    return value


def word_of(name: str, x: ArrayLike, argument: str) -> Value:
    """The 32 bits of an integer scalar. Raises DtypeError for anything but integers, ShapeError for several."""
    value = as_value(x)
    if not value.type.dtype.is_integer:
        raise dtype_error(f"{name}: {argument} must be an integer, got {value.type}")
    if value.shape:
        raise shape_error(f"{name}: {argument} must be one integer, got {value.type}")
    return cast(value, uint32)


def positions(shape: tuple[int, ...]) -> Value:
    """The counter of each element of an array of this shape: its row-major position, uint32."""
    count = TensorType(shape, uint32).size
    return reshaped(bind("iota", type=TensorType((count,), uint32), axis=0), shape)


def block(key: Value, counter: Value, word: int) -> Value:
    """One word of the Threefry block of each counter below 2^32: FIRST, SECOND, or BOTH of them by xor."""
    words = [spread(index(key, place), counter.shape) for place in range(2)]
    zero = constant_of(splat(0, uint32), counter.type)
    return bind("threefry", *words, zero, counter, word=word)


Words = tuple[Value, Value]  # of many keys: all first words, and all second ones


def key_of_each(key: ArrayLike, shape: tuple[int, ...]) -> Words:
    """One key per element: the keys that `split` returns for that many."""
    keys = split(as_key("split", key), shape)
    return index(keys, (..., 0)), index(keys, (..., 1))


def split_each(keys: Words, num: int) -> list[Words]:
    """`num` new keys per key."""
    return [(_block_of_each(keys, number, FIRST), _block_of_each(keys, number, SECOND)) for number in range(num)]


def bits_of_each(keys: Words, dtype: DType) -> Value:
    """One draw of 32 or 64 bits from each key."""
    if dtype.bits == 64:
        high, low = (cast(_block_of_each(keys, 0, word), dtype) for word in (FIRST, SECOND))
        return bind("or", bind("shift_left", high, constant_of(splat(32, dtype), high.type)), low)
    return _block_of_each(keys, 0, BOTH)


def _block_of_each(keys: Words, counter: int, word: int) -> Value:
    zero, count = (constant_of(splat(number, uint32), keys[0].type) for number in (0, counter))
    return bind("threefry", *keys, zero, count, word=word)
