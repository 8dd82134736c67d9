"""Arguments of array functions (arrays, NumPy arrays, nested lists, scalars) as values."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from lavax.base.errors import DtypeError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.default_dtypes import default_integer
from lavax.ir.location import for_user
from lavax.ir.types import DType, TensorType, bool_
from lavax.numpy._core.errors import range_error, shape_error
from lavax.numpy._core.promotion import promote
from lavax.tracer import bind, dtype_of, lift
from lavax.tracer.tracing.convert import fitting_constant, python_kinds
from lavax.tracer.tracing.known_float import KnownFloat
from lavax.tracer.values.abstract import Abstract, abstract
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

RealScalar: TypeAlias = bool | int | float
Scalar: TypeAlias = RealScalar | complex
ArrayLike: TypeAlias = "Value | np.ndarray | np.generic | Scalar | Sequence[Any]"


@dataclass(frozen=True, slots=True)
class Splat:
    """A scalar that becomes a constant of the shape and dtype of its operation."""

    value: Scalar
    abstract: Abstract  # of shape (); weak if its dtype yields

    @property
    def type(self) -> TensorType:
        return self.abstract.type

    @property
    def weak(self) -> bool:
        return self.abstract.weak

    @property
    def shape(self) -> tuple[int, ...]:
        return ()


def splat(value: Scalar, dtype: DType) -> Splat:
    """A scalar whose dtype does not yield."""
    return Splat(value, abstract(TensorType((), dtype)))


Operand: TypeAlias = Value | Splat


def as_operand(x: ArrayLike | Splat) -> Operand:
    """`x` as an operand: scalars keep an open shape and, if Python's, an open dtype; all else becomes a value.

    Raises DtypeError for anything but numbers.
    """
    if isinstance(x, (Value, Splat)):
        return x
    if isinstance(x, np.generic):
        return splat(x.item(), dtype_of(x.dtype))
    if isinstance(x, bool):
        return splat(x, bool_)
    if isinstance(x, int):
        return Splat(x, python_kinds()[int])
    if isinstance(x, float):
        return (x.value if isinstance(x, KnownFloat) else None) or Splat(x, python_kinds()[float])
    if isinstance(x, complex):
        return Splat(x, python_kinds()[complex])
    if isinstance(x, (list, tuple)) and holds_values(x):
        return join_along_new_axis("array", x, 0)
    try:
        return lift(x)
    except DtypeError as error:
        raise type(error)(for_user(str(error))) from None


def has_dtype_alone(x: Any) -> bool:
    """Whether `x` has a dtype but no elements: a ShapeDtypeStruct, or a scalar type."""
    return hasattr(x, "dtype") and not hasattr(x, "__array__")


def as_value(x: ArrayLike) -> Value:
    """`x` as a value; a Python scalar becomes a weak one of rank 0."""
    operand = as_operand(x)
    return constant_of(operand, operand.type) if isinstance(operand, Splat) else operand


def constant_of(splat: Splat, type: TensorType) -> Value:
    """A constant of `type` with the splat's value everywhere; weak if the splat is and keeps its dtype."""
    kind = splat.abstract
    return fitting_constant(scalar_as(splat.value, type.dtype), type, kind.weak and kind.type.dtype == type.dtype)


def scalar_as(value: Scalar, dtype: DType) -> Scalar:
    """`value` as an attribute of `dtype`; a float is converted to an integer as by `cast`.

    Raises NumberRangeError for an integer out of the range of an integer dtype.
    """
    if dtype.is_complex:
        return complex(value)
    if isinstance(value, complex):
        value = value.real if dtype.kind != "bool" else value != 0
    if dtype.kind == "float":
        return float(value)
    if dtype.kind == "bool":
        return bool(value)
    low, high = dtype.lowest, dtype.highest
    if isinstance(value, float):
        return 0 if math.isnan(value) else int(min(max(value, low), high))
    if not low <= value <= high:
        raise range_error(f"the Python integer {value} is outside {dtype.numpy} ({low} to {high})")
    return int(value)


def own(value: Value) -> Value:
    """`value` as an array that may be written to without changing `value`. Traced values cannot be written to."""
    return value.twin(value.weak) if isinstance(value, Array) else value


def cast(value: Value, dtype: DType) -> Value:
    """`value` with elements of `dtype`; itself if it has that dtype."""
    if value.type.dtype == dtype:
        return value
    return bind("cast", value, type=value.type.with_dtype(dtype))


def as_positions(value: Value) -> Value:
    """Positions or counts that were found in int32, in the dtype of Python's integers."""
    return cast(value, default_integer())


def holds_values(x: Any) -> bool:
    """Whether `x` is a value or nested lists that contain one, so that its numbers may not be known."""
    return isinstance(x, Value) or (isinstance(x, (list, tuple)) and any(map(holds_values, x)))


def join_along_new_axis(name: str, parts: Sequence[ArrayLike], axis: int) -> Value:
    """Values of one shape, stacked along a new axis (0 <= axis <= rank). Raises ShapeError if shapes differ."""
    operands = [as_operand(part) for part in parts]
    shape = operands[0].shape
    if any(operand.shape != shape for operand in operands):
        types = ", ".join(str(operand.type) for operand in operands)
        raise shape_error(f"{name}: the parts must have one shape, got {types}")
    dtype, _ = promote(operands)
    row = TensorType((*shape[:axis], 1, *shape[axis:]), dtype)
    rows = [
        constant_of(operand, row)
        if isinstance(operand, Splat)
        else bind("reshape", cast(operand, dtype), type=row)
        for operand in operands
    ]
    return rows[0] if len(rows) == 1 else bind("concatenate", *rows, axis=axis)
