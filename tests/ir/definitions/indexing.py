"""Gathers, scatters, and the runs that scatters are made of."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from lavax.ir import TensorType
from tests.ir.definitions.definition import Definition, Place, places
from tests.ir.definitions.reductions import FOLDS


def inserted(window: Sequence[int], axes: Sequence[int], at: Sequence[int]) -> Place:
    """`at` on `axes`, `window` on the others."""
    rest, known = iter(window), dict(zip(axes, at, strict=True))
    return tuple(known[axis] if axis in known else next(rest) for axis in range(len(window) + len(axes)))


def gather(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    x, *indices = arrays
    rank = indices[0].ndim
    read = [i[place[:rank]].item() for i in indices]
    nearest = [min(max(i, 0), x.shape[axis] - 1) for i, axis in zip(read, attrs["axes"], strict=True)]
    return x[inserted(place[rank:], attrs["axes"], nearest)]


def scatter(join: Callable[[Any, Any], Any]) -> Definition:
    def element(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
        x, updates, *indices = arrays
        window = tuple(at for axis, at in enumerate(place) if axis not in attrs["axes"])
        wanted = [place[axis] for axis in attrs["axes"]]
        hits = [at for at in places(indices[0].shape) if [i[at].item() for i in indices] == wanted]
        return reduce(join, (updates[at + window].item() for at in hits), x[place].item())

    return element


def joined_in_turn(held: Any, updates: Iterable[Any], join: str) -> Any:
    return reduce(FOLDS.get(join, lambda held, update: update), updates, held)


def fold_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    updates, order, places = arrays
    number, *window = place
    chunk = range(number * attrs["chunk"], min((number + 1) * attrs["chunk"], len(order)))
    run = [updates[(order[at], *window)].item() for at in chunk if places[at] == places[chunk[0]]]
    return joined_in_turn(run[0], run[1:], attrs["join"])


def join_runs(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    array, updates, order, places, *_ = arrays
    axes = attrs["axes"]
    target = np.ravel_multi_index([place[axis] for axis in axes], [array.shape[axis] for axis in axes])
    window = [index for axis, index in enumerate(place) if axis not in axes]
    run = [updates[(number, *window)].item() for number, at in zip(order, places, strict=True) if at == target]
    return joined_in_turn(array[place].item(), run, attrs["join"])


def join_rows(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    array, updates, at = arrays
    copy, row, column = place
    share = -(-len(updates) // (4 * len(array))) * 4
    own = range(copy * share, min((copy + 1) * share, len(updates)))
    hits = [updates[number, min(column, updates.shape[1] - 1)].item() for number in own if at[number] == row]
    return joined_in_turn(array[place].item(), hits, attrs["join"])


def join_places(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    array, updates, at = arrays
    *batch, last = place
    own = zip(updates[tuple(batch)], at[tuple(batch)], strict=True)
    hits = [update.item() for update, target in own if target == last]
    return joined_in_turn(array[place].item(), hits, attrs["join"])


def link_rows(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    """What begins a list of a place, or follows an update: the next of the same share that goes to the same place."""
    array, at = arrays
    lists, extent, (position,) = attrs["lists"], attrs["extent"], place
    share, number = -(-len(at) // lists), position - lists * extent
    own, target = (position // extent, position % extent) if number < 0 else (number // share, at[number])
    later = range(own * share if number < 0 else number + 1, min((own + 1) * share, len(at)))
    hits = [other for other in later if at[other] == target] if 0 <= target < extent else []
    return hits[0] if hits else array[place].item()


def join_lists(arrays: Sequence[np.ndarray], attrs: Mapping[str, Any], type: TensorType, place: Place) -> Any:
    array, updates, links = arrays
    firsts, hits = attrs["lists"] * len(array), []
    for start in range(place[0], firsts, len(array)):
        at = links[start]
        while at >= 0:
            hits.append(updates[at, place[1]].item())
            at = links[firsts + at]
    return joined_in_turn(array[place].item(), hits, attrs["join"])
