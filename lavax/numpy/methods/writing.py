"""Writing to arrays outside of traces: `x[key] = value`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lavax.ir.types import DType, TensorType, bfloat16, float16
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import Operand, Splat, as_operand, constant_of
from lavax.numpy._core.promotion import KIND_ORDER
from lavax.numpy.indexing.indexed_update import At
from lavax.tracer import active_trace
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value


def refuse_write(self: Value, key: Any, value: Any) -> None:
    """Raises TypeError: a traced value cannot be written to."""
    raise TypeError("traced values cannot be written to: x = x.at[key].set(value) makes a new one")


def set_item(self: Array, key: Any, value: Any) -> None:
    """`x[key] = value`: `value` is broadcast to the shape of `x[key]` and gets the dtype of `x`.

    Keys are those of `x[key]`. Positions in an index array that are outside are left out. Raises TypeError while a
    function is traced, ShapeError if the value does not broadcast, DtypeError if its dtype is of a higher kind than
    that of `x` (bool < integer < float, unsigned < signed), or if a Python integer is out of range.
    """
    if active_trace() is not None:
        raise TypeError(
            f"{self.type} cannot be written to while a function is traced: x = x.at[key].set(value) makes a new one"
        )
    operand = as_operand(value)
    if not _holds(self.type.dtype, operand):
        raise dtype_error(
            f"x[key] = value: the value is {operand.type}, which {self.type} does not hold: convert it by astype"
        )
    fitting = constant_of(operand, TensorType((), self.type.dtype)) if isinstance(operand, Splat) else operand
    self.write(At(self)[key].set(fitting))  # type: ignore[arg-type]  # outside of traces all values are arrays


def _holds(dtype: DType, operand: Operand) -> bool:
    """Whether the kind of `operand` is not above that of `dtype`; Python scalars may have either sign."""
    given = operand.type.dtype
    if operand.weak:
        return KIND_ORDER[given.kind] <= KIND_ORDER[dtype.kind]
    return bool(np.can_cast(_of_numpy(given), _of_numpy(dtype), "same_kind"))


def _of_numpy(dtype: DType) -> np.dtype:
    return float16.numpy if dtype == bfloat16 else dtype.numpy


# By name; for arrays only. `x += y` is Python's x = x + y: another name of the array keeps its numbers.
WRITING: dict[str, Callable[..., Any]] = {"__setitem__": set_item}
