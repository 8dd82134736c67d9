"""Operations that fold an axis step by step and keep every partial result."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.monoids import MONOIDS, Monoid
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import FIELDS, TensorType


def line_rule(name: str, kinds: tuple[str, ...]) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (operand,) = operands
        if not 0 <= attrs["axis"] < operand.rank:
            raise ShapeError(f"{name}: axis {attrs['axis']} is not an axis of {operand}")
        if operand.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {operand}")
        return operand

    return infer


def _evaluation(function: np.ufunc) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        axis, reverse = attrs["axis"], attrs["reverse"]
        folded = function.accumulate(np.flip(arrays[0], axis) if reverse else arrays[0], axis=axis, dtype=dtype)
        return np.asarray(np.flip(folded, axis) if reverse else folded)

    return evaluate


# Element i along `axis` is the fold of elements 0 to i, or with `reverse` of the last element down to i. For each
# operation, its kinds of numbers and its monoid.
CUMULATIVE: dict[str, tuple[tuple[str, ...], Monoid]] = {
    f"cumulative_{name}": (tuple(kind for kind in monoid.kinds if kind in FIELDS), monoid)
    for name, monoid in MONOIDS.items()
}

for _name, (_kinds, _monoid) in CUMULATIVE.items():
    define(
        Operation(
            *(_name, "routine", line_rule(_name, _kinds), _evaluation(_monoid.function), ("axis", "reverse")),
            defaults={"reverse": False},
        )
    )
