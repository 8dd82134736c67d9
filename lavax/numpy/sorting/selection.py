"""The positions of the k greatest elements of long rows, without sorting the rows.

A row is cut into blocks. Only the k blocks with the greatest maxima can hold one of the k greatest elements: their
maxima are k elements that are at least as great as any other block's. Of equal maxima the first ones are taken, so that
equal elements keep their order too. The maxima, and then the elements of the chosen blocks, are selected from in the
same way until so few are left that sorting them is cheap.
"""
from __future__ import annotations

from math import isqrt

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.movement import cut
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import moveaxis, reshape
from lavax.numpy.elementwise.arithmetic import add, multiply, subtract
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.reductions import reductions
from lavax.tracer import bind
from lavax.tracer.values.value import Value

# Rows of fewer elements are sorted, and so are those of which a larger part than one in so many is asked for, because
# the blocks would hold most of them: docs/rejected.md, "Selection of a larger part".
_SHORTEST = 512
_PART = 32


def order_of_greatest(value: Value, count: int, axis: int) -> Value:
    """The int32 positions along `axis` of the `count` greatest elements, greatest first: NaN, then the numbers.

    Equal elements are in the order of their positions.
    """
    if _is_sorted(value.shape[axis], count) or value.type.dtype.kind == "bool":
        return cut(falling_order(value, axis), axis, 0, count)
    return moveaxis(_selected(moveaxis(bind("stop_gradient", value), axis, -1), count), -1, axis)


def falling_order(value: Value, axis: int) -> Value:
    """The int32 positions along `axis` that put a value in falling order, NaN first, equal elements as they came."""
    backwards = bind("sort_order", bind("flip", value, axes=(axis,)), axis=axis)
    return subtract(value.shape[axis] - 1, bind("flip", backwards, axes=(axis,)))


def _is_sorted(length: int, count: int) -> bool:
    return count == 0 or length < max(_SHORTEST, _PART * count)


def _selected(rows: Value, count: int) -> Value:
    """`order_of_greatest` along the last axis."""
    *batch, length = rows.shape
    last = len(batch)
    if _is_sorted(length, count):
        return cut(falling_order(rows, last), last, 0, count)
    size = 1 << isqrt(length // count).bit_length() - 1  # as many maxima as candidates, about
    blocks = -(-length // size)
    whole = _lengthened(rows, blocks * size)
    greatest = reductions.max(reshape(whole, (*batch, blocks, size)), -1)
    chosen = bind("sort", _selected(greatest, count), axis=last)
    shape = (*batch, count, size)
    starts = multiply(reshape(chosen, (*batch, count, 1)), size)
    places = reshape(add(starts, iota(TensorType(shape, int32), last + 1)), (*batch, count * size))
    candidates = take_along_axis(whole, places, -1, mode="promise_in_bounds")
    return take_along_axis(places, _selected(candidates, count), -1, mode="promise_in_bounds")


def _lengthened(rows: Value, length: int) -> Value:
    """Rows with the lowest value behind them, which is selected after every element that they have."""
    missing = length - rows.shape[-1]
    if missing == 0:
        return rows
    none = (0,) * rows.ndim
    return bind("pad", rows, low=none, high=(*none[1:], missing), interior=none, value=rows.type.dtype.lowest)
