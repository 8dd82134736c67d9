"""Operations on single elements that give one of their operands as it is, and tell a pass something by it."""
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


# The first operand, computed when the second is there: what is made of it is not the same as what was made before.
define(Operation("barrier", "elementwise", _infer_barrier, _evaluate_barrier))
# The second operand, which has the value of the first, as a value with the derivatives of the first.
define(Operation("known_value", "elementwise", _infer_known_value, _evaluate_known_value))
