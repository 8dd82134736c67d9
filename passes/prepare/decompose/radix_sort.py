"""Radix sort of rows of unsigned integers, from the least significant digit to the most significant.

Each row is cut into tiles. A radix pass counts the values of each digit in each tile, which gives the position at which
the values of every tile and digit start. Then each tile moves its values there.
"""

from __future__ import annotations

from typing import Any

from lavax.ir.graph import Node
from lavax.ir.types import int32, uint32, uint64
from lavax.passes.build.builder import add, broadcast, build, cast, multiply, reshape, slice_along, splat, subtract
from lavax.passes.target.kernel_limits import RADIX_SORT

# Pairs are 64 bits: a key of 32 bits above a payload of 32.
WORD = 32


def with_payload(keys: Node, payload: Node) -> Node:
    """Pairs of non-negative 32-bit integers."""
    high = multiply(cast(keys, uint64), splat(1 << WORD, keys.type.with_dtype(uint64)))
    return add(high, cast(payload, uint64))


def keys_of(pairs: Node) -> Node:
    """The keys, as int32."""
    return cast(cast(build("shift_right_logical", pairs, splat(WORD, pairs.type)), uint32), int32)


def payload_of(pairs: Node) -> Node:
    """The payloads, as int32."""
    return cast(cast(pairs, uint32), int32)


def sorted_by_bits(values: Node, first: int, width: int, tied: bool = False) -> Node:
    """Each row of `values`, sorted stably by the `width` bits from bit `first` on.

    If `tied`, the words of floats' two zeros are equal.
    """
    passes = -(-width // RADIX_SORT.digit_bits[-1])
    bits = next(bits for bits in RADIX_SORT.digit_bits if bits * passes >= width)
    for shift in range(first, first + width, bits):
        values = _sorted_by_digit(values, shift, min(bits, values.dtype.bits - shift), tied)
    return values


def _tile_of(length: int) -> int:
    wanted = -(-length // RADIX_SORT.enough_tiles)
    return min(max(1 << (wanted - 1).bit_length(), RADIX_SORT.shortest_tile), RADIX_SORT.longest_tile)


def _sorted_by_digit(values: Node, shift: int, bits: int, tied: bool) -> Node:
    digit: dict[str, Any] = dict(shift=shift, bits=bits, tile=_tile_of(values.shape[-1]), tied=tied)
    counts = build("count_digits", values, **digit)
    tiles, last = counts.shape[-1], counts.type.rank - 1
    ends = build("cumulative_sum", counts, axis=last)
    totals = reshape(slice_along(ends, last, tiles - 1, tiles), counts.shape[:-1])
    before = subtract(build("cumulative_sum", totals, axis=last - 1), totals)
    starts = add(subtract(ends, counts), broadcast(before, counts.shape, range(last)))
    return build("move_by_digit", values, starts, **digit)
