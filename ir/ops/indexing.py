"""Operations that read and write at computed positions."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType


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


def _infer_scatter_add(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    array, updates, *indices = operands
    shape = _check_indices("scatter_add", array, indices, attrs["axes"]) + _window(array, attrs["axes"])
    if updates.shape != shape or updates.dtype != array.dtype:
        raise ShapeError(f"scatter_add: updates {updates} must be {array.with_shape(shape)}")
    if array.dtype.kind == "bool":
        raise DtypeError(f"scatter_add is not defined for {array}")
    return array


def _places_in_front(array: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    return np.moveaxis(array, axes, range(len(axes)))


def _evaluate_gather(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    array, *indices = arrays
    axes = attrs["axes"]
    if type.size == 0:
        return np.zeros(type.shape, dtype)
    clamped = [np.clip(index, 0, array.shape[axis] - 1) for index, axis in zip(indices, axes, strict=True)]
    return np.asarray(_places_in_front(array, axes)[tuple(clamped)])


def _evaluate_scatter_add(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    array, updates, *indices = arrays
    axes = attrs["axes"]
    result = np.array(array, dtype)
    inside = np.ones(indices[0].shape, np.bool_)
    for index, axis in zip(indices, axes, strict=True):
        inside &= (index >= 0) & (index < array.shape[axis])
    np.add.at(_places_in_front(result, axes), tuple(index[inside] for index in indices), updates[inside])
    return result


# gather(x, i…)[s…, w…] = x with i…[s…] at `axes` and w… at the others; indices clamp to the range.
define(Operation("gather", "indexing", _infer_gather, _evaluate_gather, ("axes",)))
# Adds updates[s…, w…] to the place gather would read; updates at places outside the range are dropped.
define(Operation("scatter_add", "indexing", _infer_scatter_add, _evaluate_scatter_add, ("axes",)))
