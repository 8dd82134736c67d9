"""Operations without operands."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType


def _infer_constant(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    if declared is None or operands:
        raise ShapeError("constant takes no operands and a result type")
    if not declared.dtype.holds(attrs["value"]):
        raise DtypeError(f"constant: {attrs['value']!r} is not a Python number that {declared} holds")
    return declared


def _infer_iota(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    if declared is None or operands:
        raise ShapeError("iota takes no operands and a result type")
    if not 0 <= attrs["axis"] < declared.rank:
        raise ShapeError(f"iota: axis {attrs['axis']} is not an axis of {declared}")
    if declared.dtype.kind == "bool":
        raise DtypeError("iota counts in numbers, not in bool")
    return declared


def _evaluate_constant(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return np.full(type.shape, attrs["value"], dtype)


def _evaluate_iota(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    axis = attrs["axis"]
    along = np.arange(type.shape[axis]).astype(dtype)
    return np.broadcast_to(along.reshape([-1 if d == axis else 1 for d in range(type.rank)]), type.shape)


# All elements have the same value: a splat.
define(Operation("constant", "source", _infer_constant, _evaluate_constant, ("value",), typed=True))
define(Operation("iota", "source", _infer_iota, _evaluate_iota, ("axis",), typed=True))
