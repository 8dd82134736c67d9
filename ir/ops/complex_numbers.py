"""Operations that take complex numbers apart and put them together."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import TensorType, complex_of, float32, float64


def _infer_complex(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    real, imaginary = operands
    if real != imaginary:
        raise ShapeError(f"complex: both parts must have one type, got {real} and {imaginary}")
    if real.dtype not in (float32, float64):
        raise DtypeError(f"complex: parts are f32 or f64, got {real}")
    return real.with_dtype(complex_of(real.dtype))


def _rule(name: str, to_part: bool) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (operand,) = operands
        if not operand.dtype.is_complex:
            raise DtypeError(f"{name} is not defined for {operand} (complex dtypes only)")
        return operand.with_dtype(operand.dtype.part) if to_part else operand

    return infer


def _evaluation(function: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        return np.asarray(function(*arrays)).astype(dtype, copy=False)

    return evaluate


def _joined(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Not a sum: 1j times an infinity has a real part that is NaN."""
    made = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    made.real, made.imag = real, imaginary
    return made


define(Operation("complex", "elementwise", _infer_complex, _evaluation(_joined)))
define(Operation("real", "elementwise", _rule("real", True), _evaluation(np.real)))
define(Operation("imag", "elementwise", _rule("imag", True), _evaluation(np.imag)))
define(Operation("conjugate", "elementwise", _rule("conjugate", False), _evaluation(np.conjugate)))
