"""Operations over a named axis. They occur in the graph of one batch element; batching replaces them."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, UnboundAxisError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, int32

# operation -> the reduction that it becomes
REDUCTIONS = {"axis_sum": "sum", "axis_max": "max", "axis_min": "min"}


def _infer_reduction(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    if operand.dtype.kind == "bool":
        raise DtypeError(f"reductions over a named axis are not defined for {operand}")
    return operand


def _infer_index(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    return TensorType((), int32)


def _infer_gather(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    return operand.with_shape((attrs["size"], *operand.shape))


def _evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    raise UnboundAxisError(
        f"the axis {attrs['name']!r} is not there when the graph runs: only batching over it, vmap with "
        f"axis_name={attrs['name']!r}, gives values on it a meaning"
    )


for _name in REDUCTIONS:
    define(Operation(_name, "axis", _infer_reduction, _evaluate, ("name",)))
# The position of the element in the batch, i32[].
define(Operation("axis_index", "axis", _infer_index, _evaluate, ("name",)))
# The values of all `size` elements, along a new first axis.
define(Operation("axis_gather", "axis", _infer_gather, _evaluate, ("name", "size")))
