"""Operations that only rearrange elements."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType


def _infer_reshape(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    if declared is None or declared.size != operand.size or declared.dtype != operand.dtype:
        raise ShapeError(f"reshape: {operand} with {operand.size} elements does not become {declared}")
    return declared


def _infer_transpose(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    if sorted(attrs["axes"]) != list(range(operand.rank)):
        raise ShapeError(f"transpose: axes {list(attrs['axes'])} are not a permutation of the axes of {operand}")
    return operand.with_shape(tuple(operand.shape[axis] for axis in attrs["axes"]))


def _infer_broadcast(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """The operand's axis d becomes the result's axis `axes[d]`; an axis of extent 1 may be repeated."""
    (operand,) = operands
    axes = attrs["axes"]
    if declared is None or declared.dtype != operand.dtype:
        raise DtypeError(f"broadcast: {operand} does not become {declared}")
    rising = list(axes) == sorted(set(axes)) and all(0 <= axis < declared.rank for axis in axes)
    if len(axes) != operand.rank or not rising:
        raise ShapeError(f"broadcast: axes {list(axes)} do not place the axes of {operand} in {declared}")
    if any(extent not in (1, declared.shape[axis]) for extent, axis in zip(operand.shape, axes, strict=True)):
        raise ShapeError(f"broadcast: {operand} does not fit {declared} at axes {list(axes)}")
    return declared


def _infer_slice(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    start, limit, stride = attrs["start"], attrs["limit"], attrs["stride"]
    if not len(start) == len(limit) == len(stride) == operand.rank:
        raise ShapeError(f"slice: start, limit and stride need {operand.rank} entries each for {operand}")
    for low, high, step, extent in zip(start, limit, stride, operand.shape, strict=True):
        if not (0 <= low <= high <= extent and step >= 1):
            raise ShapeError(f"slice: {low}:{high}:{step} is not within an extent of {extent} of {operand}")
    return operand.with_shape(
        tuple(-(-(high - low) // step) for low, high, step in zip(start, limit, stride, strict=True))
    )


def _infer_pad(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """Puts `low` and `high` elements at the ends of each axis, and `interior` ones between neighbours."""
    (operand,) = operands
    low, high, interior = attrs["low"], attrs["high"], attrs["interior"]
    if not len(low) == len(high) == len(interior) == operand.rank:
        raise ShapeError(f"pad: low, high and interior need {operand.rank} entries each for {operand}")
    if min((*low, *high, *interior, 0)) < 0:
        raise ShapeError(f"pad: widths must not be negative, got {list(low)}, {list(high)}, {list(interior)}")
    if not operand.dtype.holds(attrs["value"]):
        raise DtypeError(f"pad: {attrs['value']!r} is not a Python number that {operand} holds")
    return operand.with_shape(
        tuple(
            before + extent + max(extent - 1, 0) * between + after
            for before, extent, between, after in zip(low, operand.shape, interior, high, strict=True)
        )
    )


def _infer_concatenate(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    axis = attrs["axis"]
    if not operands:
        raise ShapeError("concatenate takes at least one operand")
    first = operands[0]
    if not 0 <= axis < first.rank:
        raise ShapeError(f"concatenate: axis {axis} is not an axis of {first}")
    for operand in operands:
        fits = operand.rank == first.rank and all(
            a == b for d, (a, b) in enumerate(zip(operand.shape, first.shape, strict=True)) if d != axis
        )
        if not fits or operand.dtype != first.dtype:
            raise ShapeError(f"concatenate along axis {axis}: {', '.join(map(str, operands))} do not fit together")
    total = sum(operand.shape[axis] for operand in operands)
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _infer_flip(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    axes = attrs["axes"]
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < operand.rank for axis in axes):
        raise ShapeError(f"flip: axes {list(axes)} must be distinct axes of {operand}, in rising order")
    return operand


def _evaluate_reshape(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return arrays[0].reshape(type.shape)


def _evaluate_transpose(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return arrays[0].transpose(attrs["axes"])


def _evaluate_broadcast(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    aligned = [1] * type.rank
    for axis, extent in zip(attrs["axes"], arrays[0].shape, strict=True):
        aligned[axis] = extent
    return np.broadcast_to(arrays[0].reshape(aligned), type.shape)


def _evaluate_slice(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return arrays[0][tuple(map(slice, attrs["start"], attrs["limit"], attrs["stride"]))]


def _evaluate_pad(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    padded = np.full(type.shape, attrs["value"], dtype)
    low, interior = attrs["low"], attrs["interior"]
    ends = [a + max(n - 1, 0) * (i + 1) + (n > 0) for a, n, i in zip(low, arrays[0].shape, interior, strict=True)]
    padded[tuple(slice(a, e, i + 1) for a, e, i in zip(low, ends, interior, strict=True))] = arrays[0]
    return padded


def _evaluate_concatenate(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return np.concatenate(arrays, attrs["axis"])


def _evaluate_flip(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.flip(arrays[0], attrs["axes"])


define(Operation("reshape", "movement", _infer_reshape, _evaluate_reshape, typed=True))
define(Operation("transpose", "movement", _infer_transpose, _evaluate_transpose, ("axes",)))
define(Operation("broadcast", "movement", _infer_broadcast, _evaluate_broadcast, ("axes",), typed=True))
define(Operation("slice", "movement", _infer_slice, _evaluate_slice, ("start", "limit", "stride")))
define(Operation("pad", "movement", _infer_pad, _evaluate_pad, ("low", "high", "interior", "value")))
define(Operation("concatenate", "movement", _infer_concatenate, _evaluate_concatenate, ("axis",)))
define(Operation("flip", "movement", _infer_flip, _evaluate_flip, ("axes",)))
