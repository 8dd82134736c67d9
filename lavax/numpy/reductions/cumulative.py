"""Cumulative reductions along an axis."""
from __future__ import annotations

from typing import Any

from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import DType, bool_, int32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.dropped_parts import tell_dropped_parts
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy._core.promotion import accumulating, summed
from lavax.numpy.arrays.creation import full
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.elementwise.comparison import isnan, where
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = [
    "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod",
    "nancumsum",
]  # fmt: skip


def accumulated(op: str, value: Value, axis: int, reverse: bool = False) -> Value:
    """The cumulative operation along `axis`, from its end if `reverse`."""
    if reverse:
        return flip(bind(op, flip(value, axis), axis=axis), axis)
    return bind(op, value, axis=axis)


def _numeric(op: str, x: ArrayLike, axis: int | None, dtype: Any) -> Value:
    """As in NumPy: None flattens."""
    value = as_value(x)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis(op, axis, value.type)
    held = _summed(value.type.dtype) if dtype is None else canonical_dtype(dtype)
    tell_dropped_parts(op, value.type.dtype, held)
    return _accumulated_in(held, op, value, along)


def _summed(dtype: DType) -> DType:
    """The dtype of running sums of `dtype` that are given none."""
    return default_integer() if dtype == bool_ else accumulating(dtype)


@one_program("dtype", "op", "axis")
def _accumulated_in(dtype: DType, op: str, value: Value, axis: int) -> Value:
    """The cumulative operation, which reads the array as it is and is summed as `dtype` requires."""
    return with_weak(cast(accumulated(op, cast(value, accumulating(dtype)), axis), dtype), False)


def cumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """The sums of the elements up to each along `axis` (None: of the flattened array), in `dtype`.

    `dtype` None is that of `a`, but 32 bits for narrower integers, and that of Python's integers for truth values.
    """
    refuse_out("cumsum", out)
    return _numeric("cumulative_sum", a, axis, dtype)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """The products of the elements up to each along `axis` (None: of the flattened array), in `dtype`.

    `dtype` None is that of `a`, but 32 bits for narrower integers, and that of Python's integers for truth values.
    """
    refuse_out("cumprod", out)
    return _numeric("cumulative_prod", a, axis, dtype)


def _standard(op: str, start: int, x: ArrayLike, axis: int | None, dtype: Any, include_initial: bool) -> Value:
    """As in the array API: `axis` may be omitted for one axis only."""
    value = as_value(x)
    if axis is None and value.ndim != 1:
        raise shape_error(f"{op}: {value.type} has {value.ndim} axes: say which by axis=")
    along = normal_axis(op, 0 if axis is None else axis, value.type)
    result = _numeric(op, value, along, dtype)
    if not include_initial:
        return result
    shape = tuple(1 if d == along else extent for d, extent in enumerate(value.shape))
    return concatenate([full(shape, start, result.type.dtype), result], along)


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Value:
    """The sums of the elements up to each along `axis`; with `include_initial` after a first 0.

    Raises ShapeError if `axis` is None and `x` does not have exactly one axis.
    """
    held = summed(as_value(x).type.dtype) if dtype is None else dtype
    return _standard("cumulative_sum", 0, x, axis, held, include_initial)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Value:
    """The products of the elements up to each along `axis`; with `include_initial` after a first 1.

    Raises ShapeError if `axis` is None and `x` does not have exactly one axis.
    """
    held = summed(as_value(x).type.dtype) if dtype is None else dtype
    return _standard("cumulative_prod", 1, x, axis, held, include_initial)


def _extremum(op: str, x: ArrayLike, axis: int, reverse: bool) -> Value:
    value = as_value(x)
    along = normal_axis(op, axis, value.type)
    if value.type.dtype == bool_:
        return cast(accumulated(op, cast(value, int32), along, reverse), bool_)
    return accumulated(op, value, along, reverse)


def cummax(x: ArrayLike, axis: int = 0, reverse: bool = False) -> Value:
    """The greatest of the elements up to each along `axis`, or from each on if `reverse`; NaN after a NaN.

    A gradient goes to the first element that equals the maximum.
    """
    return _extremum("cumulative_max", x, axis, reverse)


def cummin(x: ArrayLike, axis: int = 0, reverse: bool = False) -> Value:
    """The smallest of the elements up to each along `axis`, or from each on if `reverse`; NaN after a NaN.

    A gradient goes to the first element that equals the minimum.
    """
    return _extremum("cumulative_min", x, axis, reverse)


def cumlogsumexp(x: ArrayLike, axis: int = 0, reverse: bool = False) -> Value:
    """log(cumsum(exp(x))) along `axis` without overflow, from the end if `reverse`."""
    value = as_floating(x)
    return accumulated("cumulative_logsumexp", value, normal_axis("cumlogsumexp", axis, value.type), reverse)


def _without_nan(x: ArrayLike, instead: int) -> Value:
    value = as_value(x)
    return where(isnan(value), instead, value) if value.type.dtype.is_inexact else value


def nancumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """As `cumsum`, with NaN counted as 0."""
    refuse_out("nancumsum", out)
    return cumsum(_without_nan(a, 0), axis, dtype)


def nancumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """As `cumprod`, with NaN counted as 1."""
    refuse_out("nancumprod", out)
    return cumprod(_without_nan(a, 1), axis, dtype)
