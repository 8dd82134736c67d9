"""Operations on single elements: all operands have one shape."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import TensorType, bool_

_FLOAT, _NUMBER, _INTEGRAL, _ANY = "float", "number", "integer or bool", "any"
_KINDS = {
    _FLOAT: {"float"},
    _NUMBER: {"float", "int", "uint"},
    _INTEGRAL: {"int", "uint", "bool"},
    _ANY: {"float", "int", "uint", "bool"},
}


def _check_arity(name: str, operands: Sequence[TensorType], arity: int) -> None:
    if len(operands) != arity:
        raise ShapeError(f"{name} takes {arity} operands, got {len(operands)}")


def _same_shapes(name: str, operands: Sequence[TensorType]) -> None:
    if any(operand.shape != operands[0].shape for operand in operands):
        raise ShapeError(f"{name}: operands must have one shape, got {', '.join(map(str, operands))}")


def _rule(name: str, arity: int, accepts: str, to_bool: bool = False) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        _check_arity(name, operands, arity)
        _same_shapes(name, operands)
        if any(operand.dtype != operands[0].dtype for operand in operands):
            raise DtypeError(f"{name}: operands must have one dtype, got {', '.join(map(str, operands))}")
        if operands[0].dtype.kind not in _KINDS[accepts]:
            raise DtypeError(f"{name} is not defined for {operands[0]} ({accepts} dtypes only)")
        return operands[0].with_dtype(bool_) if to_bool else operands[0]

    return infer


def _evaluation(function: Callable[..., Any]) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        return np.asarray(function(*arrays)).astype(dtype, copy=False)

    return evaluate


def _logistic(x: np.ndarray) -> np.ndarray:
    decay = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1 / (1 + decay), decay / (1 + decay)))


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integers round toward zero; the result of a division by zero is all ones in bits."""
    if x.dtype.kind == "f":
        return np.asarray(x / y)
    exact = x.astype(np.int64) // np.where(y == 0, 1, y).astype(np.int64)
    remainder = x.astype(np.int64) - exact * y.astype(np.int64)
    toward_zero = exact + ((exact < 0) & (remainder != 0))
    return np.where(y == 0, -1, toward_zero).astype(x.dtype)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sign is the dividend's; integers: x when the divisor is zero."""
    if x.dtype.kind == "f":
        return np.asarray(np.fmod(x, y))
    return np.asarray(np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y))))


def _bitwise_not(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.logical_not(x) if x.dtype == np.bool_ else np.invert(x))


def _power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integers wrap; a negative integer exponent gives what the exact quotient truncates to."""
    if x.dtype.kind == "f":
        # Not on scalars: for an exponent of rank 0 NumPy takes a square root, which is wrong for -inf.
        return np.asarray(np.power(x.reshape(-1), y.reshape(-1))).reshape(x.shape)
    result = np.asarray(np.power(x, np.where(y < 0, 0, y)))
    if x.dtype.kind == "u":
        return result
    truncated = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, truncated, result).astype(x.dtype)


_UNARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "negate": (_NUMBER, np.negative),
    "abs": (_NUMBER, np.abs),
    "sign": (_NUMBER, np.sign),
    "floor": (_FLOAT, np.floor),
    "exp": (_FLOAT, np.exp),
    "log": (_FLOAT, np.log),
    "expm1": (_FLOAT, np.expm1),
    "log1p": (_FLOAT, np.log1p),
    "sqrt": (_FLOAT, np.sqrt),
    "rsqrt": (_FLOAT, lambda x: 1 / np.sqrt(x)),
    "sin": (_FLOAT, np.sin),
    "cos": (_FLOAT, np.cos),
    "tanh": (_FLOAT, np.tanh),
    "logistic": (_FLOAT, _logistic),
    "not": (_INTEGRAL, _bitwise_not),
    "stop_gradient": (_ANY, lambda x: x),
}

_BINARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": (_NUMBER, np.add),
    "subtract": (_NUMBER, np.subtract),
    "multiply": (_NUMBER, np.multiply),
    "divide": (_NUMBER, _divide),
    "remainder": (_NUMBER, _remainder),
    "power": (_NUMBER, _power),
    "maximum": (_ANY, np.maximum),
    "minimum": (_ANY, np.minimum),
    "and": (_INTEGRAL, np.bitwise_and),
    "or": (_INTEGRAL, np.bitwise_or),
    "xor": (_INTEGRAL, np.bitwise_xor),
}

COMPARISONS: dict[str, Callable[..., Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


def _infer_where(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_arity("where", operands, 3)
    _same_shapes("where", operands)
    condition, chosen, other = operands
    if condition.dtype != bool_:
        raise DtypeError(f"where: the condition must be bool, got {condition}")
    if chosen.dtype != other.dtype:
        raise DtypeError(f"where: both choices must have one dtype, got {chosen} and {other}")
    return chosen


def _infer_cast(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    _check_arity("cast", operands, 1)
    if declared is None or declared.shape != operands[0].shape:
        raise ShapeError(f"cast keeps the shape: {operands[0]} does not become {declared}")
    return declared


def _evaluate_cast(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    """Floats become integers by truncation, saturating at the ends of the range; NaN becomes 0."""
    (x,) = arrays
    if x.dtype.kind == "f" and type.dtype.is_integer:
        bounds = np.iinfo(dtype)
        inside = np.clip(np.nan_to_num(x.astype(np.float64), nan=0.0), bounds.min, bounds.max)
        return np.trunc(inside).astype(np.int64).astype(dtype)
    return x.astype(dtype)


for _name, (_accepts, _function) in _UNARY.items():
    define(Operation(_name, "elementwise", _rule(_name, 1, _accepts), _evaluation(_function)))
for _name, (_accepts, _function) in _BINARY.items():
    define(Operation(_name, "elementwise", _rule(_name, 2, _accepts), _evaluation(_function)))
for _name, _function in COMPARISONS.items():
    define(Operation(_name, "elementwise", _rule(_name, 2, _ANY, to_bool=True), _evaluation(_function)))
define(Operation("where", "elementwise", _infer_where, _evaluation(np.where)))
define(Operation("cast", "elementwise", _infer_cast, _evaluate_cast, typed=True))
