"""Operations that read and write at computed positions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.monoids import BY_JOIN
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import FIELDS, TensorType

_ANY = (*FIELDS, "bool")

# The elementwise operations that may join an update to the element at its position.
JOINS = {join: BY_JOIN[join] for join in ("add", "multiply", "minimum", "maximum")}


def _check_indices(name: str, array: TensorType, indices: Sequence[TensorType], axes: Sequence[int]) -> tuple[int, ...]:
    """The common shape of all indices."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < array.rank for axis in axes):
        raise ShapeError(f"{name}: axes {list(axes)} must be distinct axes of {array}, in rising order")
    if not indices or len(indices) != len(axes):
        raise ShapeError(f"{name}: {len(axes)} axes need as many index operands, got {len(indices)}")
    if any(index.dtype.name != "i32" for index in indices):
        raise DtypeError(f"{name}: indices must be i32, got {', '.join(map(str, indices))}")
    if any(index.shape != indices[0].shape for index in indices):
        raise ShapeError(f"{name}: indices must have one shape, got {', '.join(map(str, indices))}")
    return indices[0].shape


def window_of(array: TensorType, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for axis, extent in enumerate(array.shape) if axis not in axes)


def _infer_gather(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, *indices = operands
    shape = _check_indices("gather", array, indices, attrs["axes"])
    result = array.with_shape(shape + window_of(array, attrs["axes"]))
    if result.size and any(array.shape[axis] == 0 for axis in attrs["axes"]):
        raise ShapeError(f"gather: nothing can be read along an empty axis of {array}")
    return result


def _scatter_rule(name: str, kinds: tuple[str, ...]) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        array, updates, *indices = operands
        shape = _check_indices(name, array, indices, attrs["axes"]) + window_of(array, attrs["axes"])
        if updates.shape != shape or updates.dtype != array.dtype:
            raise ShapeError(f"{name}: updates {updates} must be {array.with_shape(shape)}")
        if array.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {array}")
        return array

    return infer


def places_in_front(array: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return np.moveaxis(array, axes, range(len(axes)))


def _evaluate_gather(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    array, *indices = arrays
    axes = attrs["axes"]
    if type.size == 0:
        return np.zeros(type.shape, dtype)
    clamped = [np.clip(index, 0, array.shape[axis] - 1) for index, axis in zip(indices, axes, strict=True)]
    return np.asarray(places_in_front(array, axes)[tuple(clamped)])


def _scatter_evaluation(join: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        array, updates, *indices = arrays
        axes = attrs["axes"]
        result = np.array(array, dtype)
        inside = np.ones(indices[0].shape, np.bool_)
        for index, axis in zip(indices, axes, strict=True):
            inside &= (index >= 0) & (index < array.shape[axis])
        join(places_in_front(result, axes), tuple(index[inside] for index in indices), updates[inside])
        return result

    return evaluate


def _set_at(array: np.ndarray, places: tuple[np.ndarray, ...], updates: np.ndarray) -> None:
    """Sets one after the other, so that the last update of an element wins."""
    for number, update in enumerate(updates):
        array[tuple(place[number] for place in places)] = update


SCATTERS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    **{f"scatter_{join}": (monoid.kinds, monoid.function.at) for join, monoid in JOINS.items()},
    "scatter_set": (_ANY, _set_at),
}


# gather(x, i…)[s…, w…] = x with i…[s…] at `axes` and w… at the others; indices clamp to the range.
define(Operation("gather", "indexing", _infer_gather, _evaluate_gather, ("axes",)))
# Joins updates[s…, w…] to the element that gather would read, in row-major order of the updates. Updates outside the
# range are dropped.
for _name, (_kinds, _join) in SCATTERS.items():
    define(Operation(_name, "indexing", _scatter_rule(_name, _kinds), _scatter_evaluation(_join), ("axes",)))
