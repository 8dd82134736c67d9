"""Equality and near equality of arrays."""
from __future__ import annotations

from lavax.base.errors import ShapeError
from lavax.ir.types import bool_
from lavax.numpy._core.application import together
from lavax.numpy._core.broadcasting import broadcast_shapes
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.elementwise.arithmetic import abs, add, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, isfinite, isnan, less_equal, logical_and, logical_or, where
from lavax.numpy.reductions.reductions import all as all_over
from lavax.tracer import constant
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.key_array import KeyArray
from lavax.tracer.values.value import Value

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


@one_program("equal_nan", integers=True)
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Value:
    """Whether |a - b| <= atol + rtol · |b|, elementwise, as bool; infinities are close to themselves only."""
    (first, second), _ = together("isclose", a, b, real=True)
    near = less_equal(abs(subtract(first, second)), add(atol, multiply(rtol, abs(second))))
    finite = logical_and(isfinite(first), isfinite(second))
    close = where(finite, near, equal(first, second))
    return logical_or(close, logical_and(isnan(first), isnan(second))) if equal_nan else close


@one_program("equal_nan", integers=True)
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Value:
    """Whether all elements are close, as `isclose` says, as a bool of rank 0."""
    return all_over(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Value:
    """Whether `a1` and `a2` have the same shape and elements, as a bool of rank 0."""
    if isinstance(a1, KeyArray) and isinstance(a2, KeyArray):
        a1, a2 = a1.words, a2.words
    first, second = as_value(a1), as_value(a2)
    if first.shape != second.shape:
        return constant(False, first.type.with_shape(()).with_dtype(bool_))
    same = equal(first, second)
    return all_over(logical_or(same, logical_and(isnan(first), isnan(second))) if equal_nan else same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Value:
    """Whether `a1` and `a2` broadcast to one shape, and have the same elements there, as a bool of rank 0."""
    first, second = as_value(a1), as_value(a2)
    try:
        broadcast_shapes(first.shape, second.shape)
    except ShapeError:
        return constant(False, first.type.with_shape(()).with_dtype(bool_))
    return all_over(equal(first, second))
