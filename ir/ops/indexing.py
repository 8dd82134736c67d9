"""Operations that read and write at computed positions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import NUMBERS, TensorType, int32

_ANY = (*NUMBERS, "bool")

# How an update is joined to what stands at its place, by the names of elementwise operations.
JOINS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


def _check_indices(name: str, array: TensorType, indices: Sequence[TensorType], axes: Sequence[int]) -> tuple[int, ...]:
    """The one shape of all indices."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < array.rank for axis in axes):
        raise ShapeError(f"{name}: axes {list(axes)} must be distinct axes of {array}, in rising order")
    if not indices or len(indices) != len(axes):
        raise ShapeError(f"{name}: {len(axes)} axes need as many index operands, got {len(indices)}")
    if any(index.dtype.name != "i32" for index in indices):
        raise DtypeError(f"{name}: indices must be i32, got {', '.join(map(str, indices))}")
    if any(index.shape != indices[0].shape for index in indices):
        raise ShapeError(f"{name}: indices must have one shape, got {', '.join(map(str, indices))}")
    return indices[0].shape


def _window(array: TensorType, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for axis, extent in enumerate(array.shape) if axis not in axes)


def _infer_gather(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, *indices = operands
    shape = _check_indices("gather", array, indices, attrs["axes"])
    result = array.with_shape(shape + _window(array, attrs["axes"]))
    if result.size and any(array.shape[axis] == 0 for axis in attrs["axes"]):
        raise ShapeError(f"gather: nothing can be read along an empty axis of {array}")
    return result


def _scatter_rule(name: str, kinds: tuple[str, ...]) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        array, updates, *indices = operands
        shape = _check_indices(name, array, indices, attrs["axes"]) + _window(array, attrs["axes"])
        if updates.shape != shape or updates.dtype != array.dtype:
            raise ShapeError(f"{name}: updates {updates} must be {array.with_shape(shape)}")
        if array.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {array}")
        return array

    return infer


def _check_runs(name: str, operands: Sequence[TensorType], attrs: Attributes) -> None:
    updates, order, places = operands
    if attrs["join"] not in (*JOINS, "set"):
        raise ShapeError(f"{name}: {attrs['join']!r} is none of {', '.join(JOINS)} and set")
    if not updates.rank or any(x != TensorType(updates.shape[:1], int32) for x in (order, places)):
        raise ShapeError(f"{name}: order {order} and places {places} do not fit the updates {updates}")
    if attrs["chunk"] < 1:
        raise ShapeError(f"{name}: a chunk has at least one update, got {attrs['chunk']}")


def _infer_fold_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_runs("fold_runs", operands, attrs)
    count, *window = operands[0].shape
    return operands[0].with_shape((-(-count // attrs["chunk"]), *window))


def _infer_join_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, updates, order, places, *levels = operands
    axes = attrs["axes"]
    if not axes or list(axes) != list(range(axes[0], axes[0] + len(axes))) or not 0 <= axes[0] <= axes[-1] < array.rank:
        raise ShapeError(f"join_runs: {list(axes)} are no neighbouring axes of {array}")
    _check_runs("join_runs", (updates, order, places), attrs)
    if updates != array.with_shape((updates.shape[0], *_window(array, axes))):
        raise ShapeError(f"join_runs: updates {updates} are none of {array} at the axes {list(axes)}")
    counts = levels_of(updates.shape[0], attrs["chunk"])
    if levels != [updates.with_shape((count, *updates.shape[1:])) for count in counts]:
        raise ShapeError(f"join_runs: {', '.join(map(str, levels)) or 'nothing'} is given as {counts} folded runs")
    return array


def levels_of(count: int, chunk: int) -> list[int]:
    """How many chunks there are of that many updates, of those chunks, and so on, until they are one chunk."""
    counts = []
    while count > chunk:
        count = -(-count // chunk)
        counts.append(count)
    return counts


def _places_in_front(array: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return np.moveaxis(array, axes, range(len(axes)))


def _evaluate_gather(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    array, *indices = arrays
    axes = attrs["axes"]
    if type.size == 0:
        return np.zeros(type.shape, dtype)
    clamped = [np.clip(index, 0, array.shape[axis] - 1) for index, axis in zip(indices, axes, strict=True)]
    return np.asarray(_places_in_front(array, axes)[tuple(clamped)])


def _scatter_evaluation(join: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        array, updates, *indices = arrays
        axes = attrs["axes"]
        result = np.array(array, dtype)
        inside = np.ones(indices[0].shape, np.bool_)
        for index, axis in zip(indices, axes, strict=True):
            inside &= (index >= 0) & (index < array.shape[axis])
        join(_places_in_front(result, axes), tuple(index[inside] for index in indices), updates[inside])
        return result

    return evaluate


def _set_at(array: np.ndarray, places: tuple[np.ndarray, ...], updates: np.ndarray) -> None:
    """One after the other, so that the last update of an element stands."""
    for number, update in enumerate(updates):
        array[tuple(place[number] for place in places)] = update


SCATTERS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "scatter_add": (NUMBERS, np.add.at),
    "scatter_multiply": (NUMBERS, np.multiply.at),
    "scatter_minimum": (_ANY, np.minimum.at),
    "scatter_maximum": (_ANY, np.maximum.at),
    "scatter_set": (_ANY, _set_at),
}


def _joined(attrs: Attributes, held: Any, update: Any) -> Any:
    return update if attrs["join"] == "set" else JOINS[attrs["join"]](held, update)


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
    in_front = _places_in_front(result, attrs["axes"])
    extents = in_front.shape[: len(attrs["axes"])]
    for number, place in zip(order, places, strict=True):
        if 0 <= place < prod(extents):
            at = np.unravel_index(place, extents)
            in_front[at] = _joined(attrs, in_front[at], updates[number])
    return result


# gather(x, i…)[s…, w…] = x with i…[s…] at `axes` and w… at the others; indices clamp to the range.
define(Operation("gather", "indexing", _infer_gather, _evaluate_gather, ("axes",)))
# Joins updates[s…, w…] to the place gather would read, in row-major order of the updates; updates at places outside
# the range are dropped.
for _name, (_kinds, _join) in SCATTERS.items():
    define(Operation(_name, "indexing", _scatter_rule(_name, _kinds), _scatter_evaluation(_join), ("axes",)))
# The updates[n,w…] of a scatter, whose numbers stand in `order` by the rising row-major places[n] they go to; places
# behind the last for those dropped. fold_runs: of every `chunk` of them, the first run of one place, joined in turn.
define(Operation("fold_runs", "routine", _infer_fold_runs, _evaluate_fold_runs, ("join", "chunk")))
# The array with each run of updates joined, in turn, to its place along `axes`, which are neighbours. Further operands
# are the fold_runs of all chunks, where there are several, those of every `chunk` of these, and so on.
define(Operation("join_runs", "routine", _infer_join_runs, _evaluate_join_runs, ("join", "chunk", "axes")))
