"""Arrays of given numbers, and changes of dtype."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import axis_error, dtype_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.arrays.scalar_types import ScalarType
from lavax.numpy.elementwise.bit_patterns import reinterpreted
from lavax.tracer.values.value import Value


def full(shape: Sequence[int], fill_value: ArrayLike, dtype: Any = None, *, sharding: Any = None) -> Value:
    """An array whose every element is `fill_value`, a scalar. `sharding` is taken, and changes nothing."""
    return lnp.full(shape, fill_value, dtype)


def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: Any = None, shape: Sequence[int] | None = None, sharding: Any = None
) -> Value:
    """An array of x's shape and dtype, or the ones given, whose every element is `fill_value`."""
    value = as_value(x)
    return lnp.full(value.shape if shape is None else shape, fill_value, value.dtype if dtype is None else dtype)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Value:
    """An array of zeros. `out_sharding` is taken, and changes nothing."""
    return lnp.zeros(shape, dtype)


def iota(dtype: Any, size: int) -> Value:
    """The numbers from 0 up to `size`, which is not among them. Raises DtypeError for truth values."""
    if canonical_dtype(dtype).kind == "bool":
        raise dtype_error(f"lax.iota: numbers are wanted, got the dtype {dtype!r:.40}")
    return lnp.arange(size, dtype=dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Value:
    """An array of `shape` whose elements are their positions along `dimension`. Raises AxisError."""
    if not 0 <= dimension < len(shape):
        raise axis_error(f"lax.broadcasted_iota: {tuple(shape)} has no dimension {dimension}")
    line = lnp.arange(shape[dimension], dtype=dtype)
    along = [1] * len(shape)
    along[dimension] = shape[dimension]
    return lnp.broadcast_to(lnp.reshape(line, along), shape)


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Value:
    """`operand` in another dtype, as by `astype`."""
    return lnp.astype(as_value(operand), new_dtype)


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Value:
    """The bits of each element as those of another dtype.

    A narrower dtype adds a last axis, along which the parts of an element lie, the lowest bits first; for a wider one
    the last axis, whose extent is the quotient of both widths, is removed. Raises DtypeError for truth values,
    ShapeError for another last axis.
    """
    return reinterpreted("lax.bitcast_convert_type", as_value(operand), canonical_dtype(new_dtype))


def dtype(x: ArrayLike) -> Any:
    """The dtype of x: of an array or a number; of a dtype, or a class of numbers, the dtype that it means."""
    if isinstance(x, (type, np.dtype, ScalarType)):
        return canonical_dtype(x).user
    return as_value(x).dtype
