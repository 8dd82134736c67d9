"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from lavax.linalg.decompositions import svdvals
from lavax.linalg.matrices import matrices, square_matrices
from lavax.linalg.solving import inv
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import Axis, normal_axes
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.promotion import averaging
from lavax.numpy.arrays.manipulation import expand_dims, moveaxis
from lavax.numpy.elementwise.arithmetic import abs, divide, multiply
from lavax.numpy.elementwise.comparison import equal, isnan, logical_and, logical_not, not_equal, where
from lavax.numpy.elementwise.powers import power, sqrt
from lavax.numpy.reductions.reductions import any as any_over
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import min as min_over
from lavax.numpy.reductions.reductions import squared_length
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

Order = int | float | str | None


def _root(total: Value, order: float = 2) -> Value:
    """The root of a sum of magnitudes; at zero its gradient is zero."""
    nothing = equal(total, 0)
    safe = where(nothing, 1.0, total)
    return where(nothing, inf if order < 0 else 0.0, sqrt(safe) if order == 2 else power(safe, 1 / order))


def _largest(magnitudes: Value, axes: Axis, keepdims: bool = False) -> Value:
    """The largest magnitude; 0 of none."""
    return max_over(magnitudes, axes, keepdims=keepdims, initial=None if magnitudes.size else 0)


def _root_of_squares(value: Value, axes: Axis, keepdims: bool) -> Value:
    return _root(sum_over(squared_length(value), axes, keepdims=keepdims))


def _wide(value: Value) -> Value:
    """The numbers in a dtype whose range holds their sums and squares."""
    return cast(value, averaging(value.type.dtype))


@one_program("axis", "keepdims", "ord")
def vector_norm(x: ArrayLike, *, axis: Axis = None, keepdims: bool = False, ord: int | float = 2) -> Value:
    """(Σ |x|^ord)^(1/ord) over `axis` (None: all axes). `ord` is 2 by default.

    inf is the largest magnitude, -inf the smallest, 0 the number of elements that are not zero. The gradient of the
    2-norm at zero is zero. Raises ShapeError for an axis that does not exist.
    """
    value = as_floating(x)
    axes = normal_axes("vector_norm", axis, value.type)
    return cast(_of_vectors(_wide(value), axes, keepdims, ord), value.type.dtype.part)


def _of_vectors(value: Value, axes: Axis, keepdims: bool, ord: int | float) -> Value:
    if ord == 2:
        return _root_of_squares(value, axes, keepdims)
    if ord == inf:
        return _largest(abs(value), axes, keepdims)
    if ord == -inf:
        return min_over(abs(value), axes, keepdims=keepdims)
    if ord == 0:
        return sum_over(cast(not_equal(value, 0), value.type.dtype.part), axes, keepdims=keepdims)
    if ord == 1:
        return sum_over(abs(value), axes, keepdims=keepdims)
    return _root(sum_over(power(abs(value), float(ord)), axes, keepdims=keepdims), float(ord))


def _largest_sum(along: int, fold: Callable[..., Value]) -> Callable[[Value], Value]:
    return lambda value: fold(sum_over(abs(value), along), -1)


_OF_MATRICES: dict[Order, Callable[[Value], Value]] = {
    "fro": lambda value: _root_of_squares(value, (-2, -1), False),
    "nuc": lambda value: sum_over(svdvals(value), -1),
    1: _largest_sum(-2, _largest),
    -1: _largest_sum(-2, min_over),
    inf: _largest_sum(-1, _largest),
    -inf: _largest_sum(-1, min_over),
    2: lambda value: _largest(svdvals(value), -1),
    -2: lambda value: min_over(svdvals(value), -1),
}


@one_program("keepdims", "ord")
def matrix_norm(x: ArrayLike, *, keepdims: bool = False, ord: Order = "fro") -> Value:
    """The norm of matrices [..., m, n].

    "fro" is the root of the sum of squares, "nuc" the sum of singular values, 1 and inf the largest sum of magnitudes
    of a column and of a row, 2 the largest singular value; -1, -inf and -2 the smallest.

    Raises ShapeError for fewer than two axes, ValueError for another `ord`.
    """
    value = matrices("matrix_norm", x)
    if ord not in _OF_MATRICES:
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}")
    found = cast(_OF_MATRICES[ord](_wide(value)), value.type.dtype.part)
    return expand_dims(found, (-2, -1)) if keepdims else found


@one_program("ord", "axis", "keepdims")
def norm(x: ArrayLike, ord: Order = None, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's norm: of vectors along one axis, of matrices in two; without `axis`, of an array of one or two axes.

    Without `ord` the root of the sum of squares, of any rank. Raises ShapeError if there are neither one nor two axes,
    ValueError for an `ord` that neither `vector_norm` nor `matrix_norm` has.
    """
    value = as_floating(x)
    axes = normal_axes("norm", axis, value.type)
    if ord is None:
        return cast(_root_of_squares(_wide(value), axes, keepdims), value.type.dtype.part)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"norm: ord={ord!r} is a norm of matrices, but the axes {axes} are those of vectors")
        return vector_norm(value, axis=axes, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise shape_error(f"norm: ord={ord!r} takes one axis or two, got {len(axes)} of {value.type}")
    found = matrix_norm(moveaxis(value, axes, (-2, -1)), ord=ord)
    return expand_dims(found, tuple(sorted(axes))) if keepdims else found


@one_program("p")
def cond(x: ArrayLike, p: Order = None) -> Value:
    """Condition numbers of matrices [..., m, n]: the largest singular value over the smallest.

    With `p` -2 the inverse of that; with another `p` norm(x, p)·norm(x⁻¹, p) for square matrices. Infinity for singular
    matrices. Raises ShapeError for fewer than two axes, for matrices without elements, or for those that must be square
    and are not.
    """
    given = matrices("cond", x)
    if 0 in given.shape[-2:]:
        raise shape_error(f"cond: matrices without elements have no condition number, got x {given.type}")
    if p in (None, 2, -2):
        values = svdvals(given)
        first, last = values[..., 0], values[..., -1]
        return _or_infinite(given, divide(last, first) if p == -2 else divide(first, last))
    value = square_matrices("cond", x)
    return _or_infinite(given, multiply(matrix_norm(value, ord=p), matrix_norm(inv(value), ord=p)))


def _or_infinite(matrix: Value, found: Value) -> Value:
    """Infinity instead of NaN, which singular matrices give, unless the matrix has NaN."""
    has_nan = any_over(isnan(matrix), (-2, -1))
    return where(logical_and(isnan(found), logical_not(has_nan)), inf, found)
