"""Arrays made from data, or filled with one number."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.brain_floats import is_narrow
from lavax.ir.default_dtypes import default_float
from lavax.ir.types import DType, TensorType, int32, uint32
from lavax.numpy._core.application import apply
from lavax.numpy._core.broadcasting import broadcast_to, fit
from lavax.numpy._core.devices import copied, require_device
from lavax.numpy._core.dropped_parts import tell_dropped_parts
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import (
    ArrayLike,
    Scalar,
    Splat,
    as_operand,
    as_value,
    cast,
    has_dtype_alone,
    holds_values,
    own,
)
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.elementwise.arithmetic import add
from lavax.tracer import bind, lift, with_weak
from lavax.tracer.values.value import Value

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "full", "full_like", "identity", "ones",
    "ones_like", "zeros", "zeros_like",
]  # fmt: skip

Extents = int | Sequence[int]


def asarray(
    a: ArrayLike,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """`a` (array, NumPy array, buffer, scalar, nested lists of any of them) as an array.

    `dtype` None keeps the dtype of the data, but 64-bit numbers become 32-bit ones unless `lavax.enable_x64` says
    otherwise, and a Python scalar stays weak. An array of that dtype is returned itself; with `copy` True the
    result has its own memory. `order` changes nothing: elements lie by rows. Raises ValueError if `copy` is False and a
    copy is needed, as for all data that are not arrays, or for another `order` than "C", "A" and "K". Python's
    complex numbers as real ones are a TypeError; those of arrays lose their imaginary parts, with a ComplexWarning.
    """
    if order not in (None, "C", "A", "K"):
        raise ValueError(f"asarray: order must be 'C', 'A' or 'K', as elements lie by rows, got {order!r}")
    require_device("asarray", device)
    if isinstance(a, range):
        a = list(a)
    if dtype is None:
        return copied("asarray", a, as_value(a), copy)
    held = canonical_dtype(dtype)
    if not holds_values(a) and not isinstance(a, (bool, int, float, complex, np.generic)) and _skips_32_bits(a, held):
        return copied("asarray", a, lift(a, held), copy)
    operand = as_operand(a)
    tell_dropped_parts("asarray", operand.type.dtype, held, a)
    type = operand.type if operand.type.dtype == held else operand.type.with_dtype(held)
    return copied("asarray", a, with_weak(fit(operand, type), False), copy)


def _skips_32_bits(x: ArrayLike, held: DType) -> bool:
    """Whether data must be converted to `held` directly: by way of 32 bits they would be rounded twice or overflow.

    So are data of ml_dtypes' narrow dtypes, which lavax has not.
    """
    if held.bits >= 64:
        return True
    numbers = np.asarray(x)
    if is_narrow(numbers.dtype):
        return True
    if held.is_float:
        return numbers.dtype == np.float64
    return held == uint32 and numbers.dtype.itemsize == 8 and bool(numbers.size) and numbers.max() > int32.highest


def array(
    object: ArrayLike,
    dtype: Any = None,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """As `asarray`; a Python scalar becomes an array of a strong dtype, and an array is copied.

    If it has fewer than `ndmin` axes, axes of extent 1 are added in front.
    """
    value = with_weak(asarray(object, dtype, order, copy=copy, device=device), False)
    return reshaped(value, (1,) * (whole_number("array: ndmin", ndmin) - value.ndim) + value.shape)


def copy(a: ArrayLike, order: str | None = None) -> Value:
    """`a` as an array with memory of its own; `order` as in `asarray`."""
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: Any, *, copy: bool = True, device: Any = None) -> Value:
    """`x` with elements of `dtype`.

    Floats become integers by truncation, clamped to the range, NaN 0; of complex numbers that become real the real part
    stays, with a ComplexWarning; anything not zero is true. An array
    of `dtype` is returned itself if `copy` is False.
    """
    require_device("astype", device)
    held = canonical_dtype(dtype)
    tell_dropped_parts("astype", as_operand(x).type.dtype, held, x)
    result = with_weak(cast(as_value(x), held), False)
    return own(result) if copy and result is x else result


def _filled(name: str, shape: Extents, value: Scalar, dtype: Any, device: Any) -> Value:
    require_device(name, device)
    return full(shape, value, default_float() if dtype is None else dtype)


def zeros(shape: Extents, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """An array of `shape` full of 0; of the default float if no `dtype` is given."""
    return _filled("zeros", shape, 0, dtype, device)


def ones(shape: Extents, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """An array of `shape` full of 1; of the default float if no `dtype` is given."""
    return _filled("ones", shape, 1, dtype, device)


def empty(shape: Extents, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """An array of `shape` with unspecified elements (zeros); of the default float if no `dtype` is given."""
    return _filled("empty", shape, 0, dtype, device)


def full(
    shape: Extents, fill_value: ArrayLike, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """`fill_value` repeated to `shape`, in `dtype`: its own if None.

    Raises ShapeError for negative extents, DtypeError for extents that are not integers.
    """
    require_device("full", device)
    operand = as_operand(fill_value)
    held = operand.type.dtype if dtype is None else canonical_dtype(dtype)
    target = checked_shape("full", shape)
    tell_dropped_parts("full", operand.type.dtype, held, fill_value)
    if isinstance(operand, Splat):
        return with_weak(fit(operand, TensorType(target, held)), False)
    return with_weak(broadcast_to(cast(operand, held), target), False)


def _like(name: str, x: ArrayLike, value: ArrayLike, dtype: Any, shape: Extents | None, device: Any) -> Value:
    """`x` may also be a description of an array, such as a ShapeDtypeStruct."""
    require_device(name, device)
    described: Any = x if has_dtype_alone(x) and hasattr(x, "shape") else as_operand(x).type
    return full(described.shape if shape is None else shape, value, described.dtype if dtype is None else dtype)


def zeros_like(
    a: ArrayLike, dtype: Any = None, shape: Extents | None = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """Zeros, by default in the shape and dtype of `a`."""
    return _like("zeros_like", a, 0, dtype, shape, device)


def ones_like(
    a: ArrayLike, dtype: Any = None, shape: Extents | None = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """Ones, by default in the shape and dtype of `a`."""
    return _like("ones_like", a, 1, dtype, shape, device)


def empty_like(
    prototype: ArrayLike, dtype: Any = None, shape: Extents | None = None, *, device: Any = None
) -> Value:
    """Unspecified elements (zeros), by default in the shape and dtype of `prototype`."""
    return _like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: Extents | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """`fill_value`, by default in the shape and dtype of `a`."""
    return _like("full_like", a, fill_value, dtype, shape, device)


def iota(type: TensorType, axis: int) -> Value:
    """0, 1, 2, … along `axis`, the same along the others."""
    return bind("iota", type=type, axis=axis)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Value:
    """Ones on the `k`-th diagonal of an (N, M) matrix, zeros elsewhere; of the default float if no `dtype` is given.

    Raises ShapeError for negative extents.
    """
    require_device("eye", device)
    held = default_float() if dtype is None else canonical_dtype(dtype)
    kind = TensorType(checked_shape("eye", (N, N if M is None else M)), int32)
    row, column = iota(kind, 0), iota(kind, 1)
    k = max(-kind.shape[0], min(whole_number("k", k), kind.shape[1]))  # beyond, there are no diagonals
    return cast(apply("equal", add(row, k) if k else row, column), held)


def identity(n: int, dtype: Any = None) -> Value:
    """The identity matrix of `n` rows; of the default float if no `dtype` is given."""
    return eye(n, dtype=dtype)
