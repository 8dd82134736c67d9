"""Sums of products."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType


def free_axes(type: TensorType, batch: Sequence[int], contract: Sequence[int]) -> tuple[int, ...]:
    """The axes of a dot's operand that are neither batched nor contracted."""
    return tuple(axis for axis in range(type.rank) if axis not in batch and axis not in contract)


def _infer_dot(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    """The result's axes: batch, free axes of the left operand, free axes of the right one."""
    left, right = operands
    if left.dtype != right.dtype:
        raise DtypeError(f"dot: operands must have one dtype, got {left} and {right}")
    if left.dtype.kind == "bool":
        raise DtypeError(f"dot is not defined for {left}")
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    for operand, batch, contract in ((left, left_batch, left_sum), (right, right_batch, right_sum)):
        axes = (*batch, *contract)
        if len(set(axes)) != len(axes) or any(not 0 <= axis < operand.rank for axis in axes):
            given = f"batch {list(batch)} and contract {list(contract)}"
            raise ShapeError(f"dot: {given} must be distinct axes of {operand}")
    pairs = [("batch", left_batch, right_batch), ("contract", left_sum, right_sum)]
    for what, of_left, of_right in pairs:
        if [left.shape[a] for a in of_left] != [right.shape[a] for a in of_right]:
            raise ShapeError(
                f"dot: {left} and {right} do not agree on the axes to {what}: {list(of_left)} and {list(of_right)}"
            )
    return left.with_shape(
        tuple(left.shape[axis] for axis in left_batch)
        + tuple(left.shape[axis] for axis in free_axes(left, left_batch, left_sum))
        + tuple(right.shape[axis] for axis in free_axes(right, right_batch, right_sum))
    )


def _evaluate_dot(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    left, right = arrays
    (left_batch, right_batch), (left_sum, right_sum) = attrs["batch"], attrs["contract"]
    left_label = list(range(left.ndim))
    right_label = [left.ndim + axis for axis in range(right.ndim)]
    for of_left, of_right in zip((*left_batch, *left_sum), (*right_batch, *right_sum), strict=True):
        right_label[of_right] = of_left
    result = (
        list(left_batch)
        + [label for axis, label in enumerate(left_label) if axis not in (*left_batch, *left_sum)]
        + [label for axis, label in enumerate(right_label) if axis not in (*right_batch, *right_sum)]
    )
    return np.asarray(np.einsum(left, left_label, right, right_label, result, optimize=True)).astype(dtype, copy=False)


define(Operation("dot", "contraction", _infer_dot, _evaluate_dot, ("contract", "batch")))
