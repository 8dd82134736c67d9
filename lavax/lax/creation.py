"""Arrays of given numbers, and changes of dtype."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.errors import axis_error, dtype_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer import bind
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
    """The numbers from 0 up to `size`, which is not among them."""
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
    """The bits of each element as those of another dtype of the same width. Raises DtypeError for other widths."""
    value = as_value(operand)
    wanted = as_value(lnp.zeros((), new_dtype)).type.dtype
    if wanted.storage.itemsize != value.type.dtype.storage.itemsize or "bool" in (wanted.kind, value.type.dtype.kind):
        raise dtype_error(f"lax.bitcast_convert_type: dtypes have one width, got {value.type} and {wanted}")
    return bind("bitcast", value, type=value.type.with_dtype(wanted))


def dtype(x: ArrayLike) -> Any:
    """The dtype of x."""
    return as_value(x).dtype
