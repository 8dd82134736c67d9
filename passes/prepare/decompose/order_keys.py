"""Maps values to unsigned integers in the same order. Equal numbers get equal integers, and NaN the greatest."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.types import DType, float32, int32, uint32, uint64
from lavax.passes.build.builder import add, build, cast, equal, greater, splat, where

_WORD = 32  # bits
# How many bits of float32, counted from the sign bit, hold the numbers of narrower dtypes.
_UPPER_BITS = {"f16": 19, "bf16": 16}


@dataclass(frozen=True)
class Keys:
    """Integers of 32 or 64 bits, ordered by the `width` bits from bit `first` on; lower bits do not count."""

    node: Node
    first: int
    width: int


def unsigned(dtype: DType) -> DType:
    """The unsigned integers of at least 32 bits that hold the keys of a dtype."""
    return uint64 if dtype.bits == 64 else uint32


def order_keys(x: Node) -> Keys:
    """The keys of `x`, of any dtype."""
    if x.dtype.is_float:
        wide = x if x.dtype.bits >= 32 else cast(x, float32)
        width = _UPPER_BITS.get(x.dtype.name, x.dtype.bits)
        return Keys(_of_floats(wide), wide.dtype.bits - width, width)
    return Keys(_of_integers(x), 0, x.dtype.bits)


def float_words(x: Node) -> Keys:
    """The keys of floats, but for minus zero, whose word is the one before that of zero."""
    keys = order_keys(x)
    wide = x if x.dtype.bits >= _WORD else cast(x, float32)
    bits = build("bitcast", wide, type=keys.node.type)
    sign = splat(1 << wide.dtype.bits - 1, bits.type)
    minus_zero = splat((1 << wide.dtype.bits - 1) - 1, bits.type)
    return Keys(where(equal(bits, sign), minus_zero, keys.node), keys.first, keys.width)


def floats_of(words: Node, dtype: DType) -> Node:
    """The inverse of `float_words` for floats of at most 32 bits."""
    sign = splat(1 << _WORD - 1, words.type)
    bits = where(greater(sign, words), build("not", words), build("subtract", words, sign))
    return cast(build("bitcast", bits, type=words.type.with_dtype(float32)), dtype)


def _of_integers(x: Node) -> Node:
    """The distance from the lowest value."""
    if x.dtype.kind != "int":
        return cast(x, unsigned(x.dtype))
    wide = cast(x, int32) if x.dtype.bits < 32 else x
    bits = build("bitcast", wide, type=wide.type.with_dtype(unsigned(x.dtype)))
    return add(bits, splat(-x.dtype.lowest, bits.type))


def integers_of(keys: Node, dtype: DType) -> Node:
    """The inverse of `order_keys` for integers and truth values."""
    if dtype.kind != "int":
        return cast(keys, dtype)
    shifted = build("subtract", keys, splat(-dtype.lowest, keys.type))
    signed = build("bitcast", shifted, type=keys.type.with_dtype(int32 if keys.dtype == uint32 else dtype))
    return cast(signed, dtype) if dtype.bits < 32 else signed


def _of_floats(x: Node) -> Node:
    """The bits, inverted for negative numbers, with the sign bit set for others."""
    bits = build("bitcast", x, type=x.type.with_dtype(unsigned(x.dtype)))
    sign = splat(1 << x.dtype.bits - 1, bits.type)
    infinity = splat({32: 0xFF << 23, 64: 0x7FF << 52}[x.dtype.bits], bits.type)
    magnitude = build("and", bits, splat((1 << x.dtype.bits - 1) - 1, bits.type))
    # Minus zero counts as zero here.
    key = where(greater(bits, sign), build("not", bits), build("or", magnitude, sign))
    return where(greater(magnitude, infinity), splat(bits.dtype.highest, bits.type), key)
