"""Comparisons, logic, and choices by a condition."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.location import named
from lavax.ir.types import TensorType, bool_
from lavax.numpy._core.application import apply, as_truth, real_numbers
from lavax.numpy._core.broadcasting import common_shape, fit
from lavax.numpy._core.operands import ArrayLike, Splat, as_operand, as_value, splat
from lavax.numpy._core.promotion import promote
from lavax.numpy.elementwise.arithmetic import abs
from lavax.tracer import bind, constant, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = [
    "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "less", "less_equal",
    "logical_not", "not_equal",
]  # fmt: skip


def _comparison(op: str, sign: str) -> Callable[[ArrayLike, ArrayLike], Value]:
    def function(x: ArrayLike, y: ArrayLike) -> Value:
        return apply(op, x, y)

    named(function, op, f"x {sign} y, elementwise, as bool; compared in the common dtype of `x` and `y`.")
    return function


equal = _comparison("equal", "==")
not_equal = _comparison("not_equal", "!=")
less = _comparison("less", "<")
less_equal = _comparison("less_equal", "<=")
greater = _comparison("greater", ">")
greater_equal = _comparison("greater_equal", ">=")


def logical_and(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether both are true (not zero), elementwise."""
    return apply("and", as_truth(x), as_truth(y), name="logical_and")


def logical_or(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether either is true (not zero), elementwise."""
    return apply("or", as_truth(x), as_truth(y), name="logical_or")


def logical_xor(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether just one is true (not zero), elementwise."""
    return apply("xor", as_truth(x), as_truth(y), name="logical_xor")


@one_program(scalars=True)
def logical_not(x: ArrayLike) -> Value:
    """Whether each element is false (zero)."""
    return apply("not", as_truth(x), name="logical_not")


def isnan(x: ArrayLike) -> Value:
    """Whether each element is NaN."""
    value = as_value(x)
    return apply("not_equal", value, value) if value.type.dtype.is_inexact else _everywhere(value, False)


def isinf(x: ArrayLike) -> Value:
    """Whether each element is infinite."""
    value = as_value(x)
    return equal(abs(value), float("inf")) if value.type.dtype.is_inexact else _everywhere(value, False)


def isposinf(x: ArrayLike) -> Value:
    """Whether each element is positive infinity. Raises DtypeError for complex numbers."""
    return equal(real_numbers("isposinf", x), float("inf"))


def isneginf(x: ArrayLike) -> Value:
    """Whether each element is negative infinity. Raises DtypeError for complex numbers."""
    return equal(real_numbers("isneginf", x), float("-inf"))


@one_program(scalars=True)
def isfinite(x: ArrayLike) -> Value:
    """Whether each element is neither NaN nor infinite."""
    value = as_value(x)
    if value.type.dtype.is_complex:
        return logical_and(isfinite(bind("real", value)), isfinite(bind("imag", value)))
    return less(abs(value), float("inf")) if value.type.dtype.is_float else _everywhere(value, True)


def _everywhere(value: Value, truth: bool) -> Value:
    return constant(truth, value.type.with_dtype(bool_))


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Value:
    """`x` where `condition` is true (not zero), else `y`, elementwise.

    The gradient of the choice not taken is zero, but 0 times an infinity is NaN: keep both choices finite.
    """
    given, chosen, other = as_operand(condition), as_operand(x), as_operand(y)
    chooser = splat(bool(given.value), bool_) if isinstance(given, Splat) else as_truth(given)
    dtype, weak = promote([chosen, other])
    shape = common_shape("where", [chooser, chosen, other])
    type = TensorType(shape, dtype)
    result = bind("where", fit(chooser, type.with_dtype(bool_)), fit(chosen, type), fit(other, type))
    return with_weak(result, True) if weak else result
