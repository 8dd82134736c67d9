"""Reductions over axes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.monoids import REDUCTIONS
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import TensorType, int32


def _without(type: TensorType, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for axis, extent in enumerate(type.shape) if axis not in axes)


def _check_axes(name: str, operand: TensorType, axes: Sequence[int]) -> None:
    if list(axes) != sorted(set(axes)) or any(not 0 <= axis < operand.rank for axis in axes):
        raise ShapeError(f"{name}: axes {list(axes)} must be distinct axes of {operand}, in rising order")


def _reduction_rule(name: str, kinds: tuple[str, ...], of_no_elements: bool) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (operand,) = operands
        _check_axes(name, operand, attrs["axes"])
        if operand.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {operand}")
        if not of_no_elements and any(operand.shape[axis] == 0 for axis in attrs["axes"]):
            raise ShapeError(f"{name} of no elements has no value: {operand} over axes {list(attrs['axes'])}")
        return operand.with_shape(_without(operand, attrs["axes"]))

    return infer


def _position_rule(name: str) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (operand,) = operands
        _check_axes(name, operand, (attrs["axis"],))
        if operand.shape[attrs["axis"]] == 0:
            raise ShapeError(f"{name} of no elements has no value: {operand} along axis {attrs['axis']}")
        return TensorType(_without(operand, (attrs["axis"],)), int32)

    return infer


def _reduction(function: np.ufunc) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        return np.asarray(function.reduce(arrays[0], axis=tuple(attrs["axes"]), dtype=dtype))

    return evaluate


def _position(function: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        return np.asarray(function(arrays[0], axis=attrs["axis"])).astype(dtype)

    return evaluate


# The reductions that are defined for no elements, as in NumPy.
_OF_NO_ELEMENTS = ("sum", "prod")

for _name, _monoid in REDUCTIONS.items():
    _rule = _reduction_rule(_name, _monoid.kinds, _name in _OF_NO_ELEMENTS)
    define(Operation(_name, "reduction", _rule, _reduction(_monoid.function), ("axes",)))
# The first position of the extremum; a NaN counts as the extremum, as in NumPy.
define(Operation("argmax", "reduction", _position_rule("argmax"), _position(np.argmax), ("axis",)))
define(Operation("argmin", "reduction", _position_rule("argmin"), _position(np.argmin), ("axis",)))
