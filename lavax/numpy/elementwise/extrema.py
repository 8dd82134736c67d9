"""The greater or the smaller of two, and bounds."""
from __future__ import annotations

from lavax.numpy._core.application import binary_function
from lavax.numpy._core.operands import ArrayLike, as_value, own
from lavax.numpy.elementwise.comparison import isnan, where
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["clip", "fmax", "fmin"]

maximum = binary_function("maximum", "The greater of `x` and `y`; NaN where either is")
minimum = binary_function("minimum", "The smaller of `x` and `y`; NaN where either is")


def clip(x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Value:
    """`x` held between `min` and `max`, elementwise; None is no bound. Where min > max the result is max."""
    result = as_value(x)
    if min is None and max is None:
        return own(result)
    if min is not None and max is not None and result.type.dtype.is_float:
        return _between(result, min, max)
    if min is not None:
        result = maximum(result, min)
    return result if max is None else minimum(result, max)


@one_program()
def _between(x: ArrayLike, min: ArrayLike, max: ArrayLike) -> Value:
    """Floats between bounds, which other numbers may take the place of in later calls of the same program."""
    return minimum(maximum(x, min), max)


@one_program(integers=True)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The greater of `x1` and `x2`, elementwise; if one is NaN, the other."""
    return where(isnan(x1), x2, where(isnan(x2), x1, maximum(x1, x2)))


@one_program(integers=True)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The smaller of `x1` and `x2`, elementwise; if one is NaN, the other."""
    return where(isnan(x1), x2, where(isnan(x2), x1, minimum(x1, x2)))
