"""Weighted averages, covariances and correlations."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lavax.ir.types import DType
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import Axis, normal_axes, rising_axes
from lavax.numpy._core.broadcasting import common_dtype, spread
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.promotion import averaging, join, promote
from lavax.numpy.arrays.complex_parts import conj
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import transpose
from lavax.numpy.elementwise.arithmetic import divide, multiply, subtract
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.products.linear_algebra import matmul
from lavax.numpy.reductions.reductions import fold, mean
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import constant
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["average", "corrcoef", "cov"]


@one_program("axis", "returned", "keepdims")
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The mean over `axis` (None: all axes), weighted by `weights`, of the shape of `a` or of its axes `axis` alone.

    With `returned` also the sum of the weights, in the shape of the mean.
    """
    value = as_floating(a)
    axes = rising_axes("average", axis, value.type)
    if weights is None:
        result = mean(value, axes, keepdims=keepdims)
        count = float(math.prod(value.shape[d] for d in axes))
        return (result, constant(count, result.type)) if returned else result
    scale = as_floating(weights)
    held, _ = promote([value, scale])
    value, scale = (cast(part, averaging(held)) for part in (value, scale))
    if scale.shape != value.shape:
        scale = _along(scale, value, normal_axes("average", axis, value.type))
    total = fold("sum", scale, axes, keepdims)
    result = cast(divide(fold("sum", multiply(value, scale), axes, keepdims), total), held)
    return (result, cast(total, held)) if returned else result


def _along(weights: Value, value: Value, axes: tuple[int, ...]) -> Value:
    """Weights of the entries along `axes`, in this order, broadcast to `value`."""
    if weights.shape != tuple(value.shape[d] for d in axes):
        raise shape_error(f"average: weights {weights.type} do not fit {value.type} over axes {list(axes)}")
    rising = transposed(weights, sorted(range(len(axes)), key=lambda place: axes[place]))
    kept = tuple(extent if d in axes else 1 for d, extent in enumerate(value.shape))
    return spread(reshaped(rising, kept), value.shape)


@one_program("rowvar", "bias", "ddof")
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: Any = None,
) -> Value:
    """The covariances of variables, one per row (a column if not `rowvar`) with its observations.

    Divides by their number less `ddof` (1, or 0 if `bias`). `fweights` is the number of times each observation was
    made, an integer, and `aweights` its weight. `dtype` is that of the variables; the result has the wider one of it
    and that of `aweights`. Raises ShapeError for weights that are not one per observation, DtypeError for `fweights`
    that are not integers.
    """
    rows, held = _variables_to_average((m,) if y is None else (m, y), rowvar, dtype)
    if fweights is not None and as_value(fweights).type.dtype.is_inexact:
        raise dtype_error(f"cov: fweights are numbers of times, integers, got {as_value(fweights).type}")
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and as_value(weights).shape != rows.shape[1:]:
            given = as_value(weights).type
            raise shape_error(f"cov: {name} must be one for each of {rows.shape[1]} observations, got {given}")
    if aweights is not None:
        held = join(held, as_value(aweights).type.dtype)
        rows = cast(rows, averaging(held))
    return cast(_covariances(rows, ddof if ddof is not None else int(not bias), fweights, aweights), held)


def _variables_to_average(parts: Sequence[ArrayLike], rowvar: bool, dtype: Any) -> tuple[Value, DType]:
    """All variables, one per row, as floats to be averaged, and the dtype of the result."""
    rows = concatenate([_variables(part, rowvar) for part in common_dtype(parts)], 0)
    if dtype is not None:
        held = canonical_dtype(dtype)
        if not held.is_inexact:
            raise dtype_error(f"cov, corrcoef: dtype must be one of floats or complex numbers, got {held.user_name}")
        rows = cast(rows, held)
    return cast(rows, averaging(rows.type.dtype)), rows.type.dtype


def _covariances(rows: Value, less: int, fweights: ArrayLike | None, aweights: ArrayLike | None) -> Value:
    weight = None
    for given in (fweights, aweights):
        if given is not None:
            factor = cast(as_floating(given), rows.type.dtype)
            weight = factor if weight is None else multiply(weight, factor)
    if weight is None:
        centred = subtract(rows, mean(rows, 1, keepdims=True))
        product = matmul(centred, conj(transpose(centred)))
        return _one_as_scalar(divide(product, float(max(rows.shape[1] - less, 0))))
    total = sum_over(weight)
    centre = divide(sum_over(multiply(rows, weight), 1, keepdims=True), total)
    centred = subtract(rows, centre)
    lost: ArrayLike = float(less)
    if aweights is not None and less:
        lost = multiply(divide(sum_over(multiply(weight, as_floating(aweights))), total), float(less))
    product = matmul(multiply(centred, weight), conj(transpose(centred)))
    return _one_as_scalar(divide(product, subtract(total, lost)))


def _variables(x: ArrayLike, rowvar: bool) -> Value:
    value = as_floating(x)
    if value.ndim > 2:
        raise shape_error(f"cov: {value.type} has more than two axes")
    if value.ndim < 2:
        return reshaped(value, (1, value.size))
    return value if rowvar or value.shape[0] == 1 else transpose(value)


def _one_as_scalar(matrix: Value) -> Value:
    """A matrix of one element as a scalar."""
    return reshaped(matrix, ()) if matrix.shape == (1, 1) else matrix


@one_program("rowvar")
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: Any = None) -> Value:
    """The correlations of variables, one per row (a column if not `rowvar`): from -1 to 1, NaN for constant ones.

    `dtype` is as in `cov`.
    """
    rows, held = _variables_to_average((x,) if y is None else (x, y), rowvar, dtype)
    matrix = _covariances(rows, 1, None, None)
    if not matrix.ndim:
        return cast(divide(matrix, matrix), held)
    count = matrix.shape[0]
    scale = sqrt(reshaped(matrix, (count * count,))[:: count + 1])
    return cast(clip(divide(divide(matrix, reshaped(scale, (count, 1))), scale), -1.0, 1.0), held)
