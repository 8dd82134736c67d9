"""The parameters of distributions as floats, and the shape of the draws."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.default_dtypes import default_float, default_integer
from lavax.ir.types import DType, TensorType, float32, float64
from lavax.numpy._core.broadcasting import common_shape, fit
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, Operand, as_operand
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.tracer.values.value import Value


def floating_dtype(name: str, dtype: Any) -> DType:
    """The floating dtype that `dtype` names, by default that of Python's floats. Raises DtypeError for another kind."""
    held = default_float() if dtype is None else canonical_dtype(dtype)
    if not held.is_float:
        raise dtype_error(f"{name}: dtype must be floating, got {held.numpy}")
    return held


def integer_dtype(name: str, dtype: Any) -> DType:
    """The integer dtype that `dtype` names, by default that of Python's integers. Raises DtypeError for others."""
    held = default_integer() if dtype is None else canonical_dtype(dtype)
    if not held.is_integer:
        raise dtype_error(f"{name}: dtype must be an integer dtype, got {held.numpy}")
    return held


def at_least_float32(dtype: DType) -> DType:
    """The dtype in which numbers are drawn that are rounded to `dtype` after a computation."""
    return dtype if dtype == float64 else float32


def drawn_shape(name: str, shape: int | Sequence[int] | None, *parameters: ArrayLike) -> tuple[int, ...]:
    """`shape`, to which all parameters must broadcast; if None, their common shape."""
    operands = [as_operand(parameter) for parameter in parameters]
    if shape is None:
        return common_shape(name, operands)
    extents = checked_shape(name, shape)
    for operand in operands:
        _require_fit(name, operand, extents)
    return extents


def _require_fit(name: str, operand: Operand, shape: tuple[int, ...]) -> None:
    fits = len(operand.shape) <= len(shape) and all(
        own in (1, extent) for own, extent in zip(reversed(operand.shape), reversed(shape), strict=False)
    )
    if not fits:
        raise shape_error(f"{name}: a parameter of shape {operand.shape} does not broadcast to the shape {shape}")


def spread_parameter(parameter: ArrayLike, shape: tuple[int, ...], dtype: DType) -> Value:
    """A parameter in the shape and dtype of the draws."""
    return fit(as_operand(parameter), TensorType(shape, dtype))
