"""Elementwise operations that return one of their operands unchanged and thereby tell a pass something."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType


def _infer_barrier(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    value, after = operands
    if value.shape != after.shape:
        raise ShapeError(f"barrier: operands must have one shape, got {value} and {after}")
    return value


def _infer_known_value(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    made, known = operands
    if made != known:
        raise ShapeError(f"known_value: operands must have one type, got {made} and {known}")
    return known


def _evaluate_barrier(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return arrays[0]


def _evaluate_known_value(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return arrays[1]


# The first operand, computed after the second. Values computed from it do not merge with values computed before.
define(Operation("barrier", "elementwise", _infer_barrier, _evaluate_barrier))
# The second operand, which equals the first, with the derivatives of the first.
define(Operation("known_value", "elementwise", _infer_known_value, _evaluate_known_value))
