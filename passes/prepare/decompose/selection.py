"""The positions of the greatest elements of rows: by sorting short rows, and from the maxima of blocks of long ones.

Only the blocks with the greatest maxima, as many as elements are asked for, can hold one of the greatest elements:
their maxima are elements that are at least as great as any other block's. Of equal maxima the first ones are taken, so
that equal elements keep their order too. The maxima, and then the elements of the chosen blocks, are selected from in
the same way until so few are left that sorting them is cheap, or that a kernel can select from them.
"""
from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    add,
    broadcast,
    build,
    flip,
    gather,
    index_type,
    iota,
    multiply,
    pad,
    reduce,
    reshape,
    splat,
)
from lavax.passes.build.orders import first_of_falling
from lavax.passes.prepare.decompose.order_keys import float_words
from lavax.passes.prepare.decompose.sorting import along_last, order_of_rows, sorted_rows
from lavax.passes.target.target import Target

# Where no kernel selects, rows of fewer elements are sorted, and so are those of which a larger part than one in
# so many is asked for, because the blocks would hold most of them:
# docs/rejected/sorting_and_scatters.md, "Selection of a larger part".
_SHORTEST = 512
_PART = 32


def _order_of_greatest(node: Node, target: Target) -> Node:
    count, by_words = node.attrs["count"], node.attrs["signed_zeros"] and node.operands[0].dtype.is_float

    def select(x: Node, target: Target) -> Node:
        return _selected(float_words(x).node if by_words else x, count, target, by_place=False)

    return along_last(select)(node, target)


def _selected(rows: Node, count: int, target: Target, by_place: bool) -> Node:
    """The positions of the greatest elements along the last axis, greatest first or in their own order."""
    *batch, length = rows.shape
    last = len(batch)
    is_word = rows.dtype.bits <= 32 and rows.dtype.kind != "bool"
    is_short = length <= target.sorting.longest_selected or length < _PART * count
    if is_word and count <= target.sorting.most_selected and is_short:
        return build("select_greatest", rows, count=count, by_place=by_place)
    if rows.dtype.kind == "bool" or length < max(_SHORTEST, _PART * count):
        backwards = order_of_rows(flip(rows, (last,)), target)
        order = first_of_falling(backwards, last, count)
        return sorted_rows(order, target) if by_place else order
    size = 1 << isqrt(length // count).bit_length() - 1  # as many maxima as candidates, about
    blocks = -(-length // size)
    whole = _lengthened(rows, blocks * size)
    greatest = reduce("max", reshape(whole, (*batch, blocks, size)), (last + 1,))
    chosen = _selected(greatest, count, target, by_place=True)
    shape = (*batch, count, size)
    starts = multiply(broadcast(chosen, shape, range(last + 1)), splat(size, index_type(shape)))
    places = reshape(add(starts, iota(index_type(shape), last + 1)), (*batch, count * size))
    candidates = _taken(whole, places)
    return _taken(places, _selected(candidates, count, target, by_place))


def _taken(rows: Node, places: Node) -> Node:
    last = rows.type.rank - 1
    axes = range(rows.type.rank)
    return gather(rows, [places if axis == last else iota(places.type, axis) for axis in axes], axes)


def _lengthened(rows: Node, length: int) -> Node:
    """Rows with the lowest value behind them, which is selected after every element that they have."""
    missing = length - rows.shape[-1]
    if missing == 0:
        return rows
    none = [0] * rows.type.rank
    return pad(rows, none, [*none[1:], missing], none, rows.dtype.lowest)


RULES: dict[str, Callable[[Node, Target], Node]] = {"top_order": _order_of_greatest}
