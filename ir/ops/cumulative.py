"""Operations that fold an axis step by step and keep every partial result."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import TensorType

_NUMBERS = ("float", "int", "uint")
_FLOATS = ("float",)


def _rule(name: str, kinds: tuple[str, ...]) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (operand,) = operands
        if not 0 <= attrs["axis"] < operand.rank:
            raise ShapeError(f"{name}: axis {attrs['axis']} is not an axis of {operand}")
        if operand.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {operand}")
        return operand

    return infer


def _evaluation(function: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        return np.asarray(function(arrays[0], axis=attrs["axis"], dtype=dtype))

    return evaluate


# Element i along `axis` is the fold of the elements 0 to i.
CUMULATIVE: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "cumulative_sum": (_NUMBERS, np.add.accumulate),
    "cumulative_prod": (_NUMBERS, np.multiply.accumulate),
    "cumulative_max": (_NUMBERS, np.maximum.accumulate),
    "cumulative_min": (_NUMBERS, np.minimum.accumulate),
    "cumulative_logsumexp": (_FLOATS, np.logaddexp.accumulate),
}

for _name, (_kinds, _function) in CUMULATIVE.items():
    define(Operation(_name, "routine", _rule(_name, _kinds), _evaluation(_function), ("axis",)))
