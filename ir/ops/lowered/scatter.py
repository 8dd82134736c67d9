"""Steps of scatters: updates in the order of their positions, in place, or in lists."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.indexing import JOINS, places_in_front, window_of
from lavax.ir.types import TensorType, int32

TOGETHER = 4  # updates whose places are read at once: a share of them has a multiple


def _check_segments(name: str, operands: Sequence[TensorType], attrs: Attributes) -> None:
    updates, order, places = operands
    if attrs["join"] not in (*JOINS, "set"):
        raise ShapeError(f"{name}: {attrs['join']!r} is none of {', '.join(JOINS)} and set")
    if not updates.rank or any(x != TensorType(updates.shape[:1], int32) for x in (order, places)):
        raise ShapeError(f"{name}: order {order} and places {places} do not fit the updates {updates}")
    if attrs["chunk"] < 1:
        raise ShapeError(f"{name}: a chunk has at least one update, got {attrs['chunk']}")


def _infer_fold_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_segments("fold_runs", operands, attrs)
    count, *window = operands[0].shape
    return operands[0].with_shape((-(-count // attrs["chunk"]), *window))


def _infer_join_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, updates, order, places, *levels = operands
    axes = attrs["axes"]
    if not axes or list(axes) != list(range(axes[0], axes[0] + len(axes))) or not 0 <= axes[0] <= axes[-1] < array.rank:
        raise ShapeError(f"join_runs: {list(axes)} are no neighbouring axes of {array}")
    _check_segments("join_runs", (updates, order, places), attrs)
    if updates != array.with_shape((updates.shape[0], *window_of(array, axes))):
        raise ShapeError(f"join_runs: updates {updates} are none of {array} at the axes {list(axes)}")
    if attrs["chunk"] < 2:
        raise ShapeError(f"join_runs: chunks of chunks become fewer if they have two at least, got {attrs['chunk']}")
    counts = levels_of(updates.shape[0], attrs["chunk"])
    if levels != [updates.with_shape((count, *updates.shape[1:])) for count in counts]:
        raise ShapeError(f"join_runs: {', '.join(map(str, levels)) or 'nothing'} is given as {counts} folded runs")
    return array


def levels_of(count: int, chunk: int) -> list[int]:
    """The number of chunks of that many updates, of chunks of those chunks, and so on, down to one chunk."""
    counts = []
    while count > chunk:
        count = -(-count // chunk)
        counts.append(count)
    return counts


def _joined(attrs: Attributes, held: Any, update: Any) -> Any:
    return update if attrs["join"] == "set" else JOINS[attrs["join"]].function(held, update)


def _evaluate_fold_runs(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    updates, order, places = arrays
    result = np.empty(type.shape, dtype)
    for number in range(len(result)):
        start = number * attrs["chunk"]
        result[number] = updates[order[start]]
        for at in range(start + 1, min(start + attrs["chunk"], len(places))):
            if places[at] != places[start]:
                break
            result[number] = _joined(attrs, result[number], updates[order[at]])
    return result


def _evaluate_join_runs(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    array, updates, order, places, *_ = arrays
    result = np.array(array, dtype)
    in_front = places_in_front(result, attrs["axes"])
    extents = in_front.shape[: len(attrs["axes"])]
    for number, place in zip(order, places, strict=True):
        if 0 <= place < prod(extents):
            at = np.unravel_index(place, extents)
            in_front[at] = _joined(attrs, in_front[at], updates[number])
    return result


def _infer_join_places(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, updates, places = operands
    fits = array.rank >= 1 and updates == array.with_shape((*array.shape[:-1], *updates.shape[-1:]))
    if not fits or places != updates.with_dtype(int32):
        raise ShapeError(f"join_places: updates {updates} at {places} do not fit the array {array}")
    if attrs["join"] not in (("add",) if array.dtype.is_float else ("add", "maximum", "minimum")):
        raise ShapeError(f"join_places: {attrs['join']!r} is no atomic operation on {array}")
    return array


def _evaluate_join_places(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    array, updates, places = arrays
    result, is_inside = np.array(array, dtype), (places >= 0) & (places < array.shape[-1])
    *batch, _ = np.nonzero(is_inside)
    JOINS[attrs["join"]].function.at(result, (*batch, places[is_inside]), updates[is_inside])
    return result


def _infer_join_rows(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, updates, places = operands
    are_rows = array.rank == 3 and updates.rank == 2 and updates.dtype == array.dtype
    fits = are_rows and updates.shape[1] <= array.shape[2]
    if not fits or places != TensorType(updates.shape[:1], int32):
        raise ShapeError(f"join_rows: updates {updates} at {places} do not fit the arrays {array}")
    if attrs["join"] not in (*JOINS, "set"):
        raise ShapeError(f"join_rows: {attrs['join']!r} is none of {', '.join(JOINS)} and set")
    return array


def share_of_rows(arrays: Sequence[int], updates: Sequence[int]) -> int:
    """How many updates, one after the other, each of several arrays is given, from shapes: a multiple of four."""
    return -(-updates[0] // (arrays[0] * TOGETHER)) * TOGETHER


def _evaluate_join_rows(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    array, updates, places = arrays
    result = np.array(array, dtype)
    behind = ((0, 0), (0, array.shape[2] - updates.shape[1]))
    updates = np.pad(updates, behind, mode="edge") if updates.size else updates
    share = share_of_rows(array.shape, updates.shape)
    for number, place in enumerate(places):
        if 0 <= place < result.shape[1]:
            at = number // share, place
            result[at] = _joined(attrs, result[at], updates[number])
    return result


def _infer_link_rows(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, places = operands
    lists, extent, fits = attrs["lists"], attrs["extent"], places.rank == 1 and places.dtype == int32
    if not fits or array != places.with_shape((length_of_links(lists, extent, places.shape[0]),)):
        lists_of_places = f"{lists} lists of {extent} places"
        raise ShapeError(f"link_rows: {lists_of_places}, of updates at {places}, do not fit {array}")
    return array


def length_of_links(lists: int, extent: int, count: int) -> int:
    """The lists' first updates, by list and place, and for each update the next one."""
    return lists * extent + count


def share_of_list(lists: int, count: int) -> int:
    """How many updates, one after the other, each list is made of."""
    return -(-count // lists)


def _evaluate_link_rows(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    array, places = arrays
    result, extent, share = np.array(array, dtype), attrs["extent"], share_of_list(attrs["lists"], len(places))
    for number in reversed(range(len(places))):
        if 0 <= places[number] < extent:
            first = number // share * extent + places[number]
            result[attrs["lists"] * extent + number], result[first] = result[first], number
    return result


def _infer_join_lists(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, updates, links = operands
    fits = array.rank == 2 and updates == array.with_shape((updates.shape[0], array.shape[1]))
    length = length_of_links(attrs["lists"], array.shape[0], updates.shape[0])
    if not fits or links != TensorType((length,), int32):
        raise ShapeError(f"join_lists: updates {updates} in lists {links} do not fit the array {array}")
    if attrs["join"] not in JOINS:
        raise ShapeError(f"join_lists: {attrs['join']!r} is none of {', '.join(JOINS)}")
    return array


def _evaluate_join_lists(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    array, updates, links = arrays
    result, firsts = np.array(array, dtype), attrs["lists"] * len(array)
    for first in range(firsts):
        place, at = first % len(array), int(links[first])
        while at >= 0:
            result[place] = _joined(attrs, result[place], updates[at])
            at = int(links[firsts + at])
    return result


# join_places(array[…,n], updates[…,m], places[…,m]): each array with its updates joined to the elements at their
# places, if there are such.
define(Operation("join_places", "lowered", _infer_join_places, _evaluate_join_places, ("join",)))
# join_rows(arrays[c,n,w], updates[m,v], places[m]): each array with the rows of its share of the updates joined, in
# turn, to the rows at their places, if there are such. Where lines of the arrays go on behind the rows, the last
# element is joined again.
define(Operation("join_rows", "lowered", _infer_join_rows, _evaluate_join_rows, ("join",)))
# link_rows(array[lists × extent + m], places[m]): lists of the updates of each place, in their order, each of a share
# of the updates. What a list begins with stands at list × extent + place, what follows an update behind all these. The
# array is -1, which stays where nothing is written, and so ends lists.
define(Operation("link_rows", "lowered", _infer_link_rows, _evaluate_link_rows, ("lists", "extent")))
# join_lists(array[n,w], updates[m,w], links[lists × n + m]): the array with the updates of each row's lists joined to
# it in turn.
define(Operation("join_lists", "lowered", _infer_join_lists, _evaluate_join_lists, ("join", "lists")))
# Operands are the updates[n,w…] of a scatter, their numbers in `order`, sorted by position, and the row-major
# positions, places[n]; updates that are dropped have one beyond the last. A segment is the updates of one position.
# fold_runs(updates, order, places): the first segment of each `chunk` of updates, joined in order.
define(Operation("fold_runs", "lowered", _infer_fold_runs, _evaluate_fold_runs, ("join", "chunk")))
# join_runs(array, updates, order, places, levels…): the array with each segment joined, in turn, to its position along
# `axes`, which are neighbours. Levels, if there are several chunks, are the fold_runs of the updates, then those of
# every `chunk` of these, and so on.
define(Operation("join_runs", "lowered", _infer_join_runs, _evaluate_join_runs, ("join", "chunk", "axes")))
