"""What all losses share: operands in at least float32, and the mean or sum at the end."""
from __future__ import annotations

from typing import Literal

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating, real_numbers
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.promotion import averaging
from lavax.tracer.values.value import Value

Reduction = Literal["mean", "sum", "none"]


def widened(x: ArrayLike) -> Value:
    """`x` as floats; 16-bit ones in float32, so that neither terms nor their sums lose digits."""
    value = as_floating(x)
    return cast(value, averaging(value.type.dtype))


def real_operand(name: str, x: ArrayLike) -> Value:
    """`x` as by `widened`. Raises DtypeError for complex numbers, of which a loss would be complex."""
    return widened(real_numbers(name, x))


def operands(name: str, input: ArrayLike, target: ArrayLike, of_distances: bool = False) -> tuple[Value, Value]:
    """Both as floats, or for a loss `of_distances` |input - target| also as complex numbers.

    Raises ShapeError unless the shapes are equal, or `target` is one number, DtypeError for other complex numbers.
    """
    left, right = (widened(x) if of_distances else real_operand(name, x) for x in (input, target))
    if right.ndim and left.shape != right.shape:
        raise shape_error(
            f"{name}: input and target must have the same shape, got {left.type} and {right.type}; reshape one of them "
            "(broadcasting here is nearly always a mistake)"
        )
    return left, right


def reduced(name: str, losses: Value, reduction: str) -> Value:
    """The mean, the sum, or all of the losses. Raises ValueError for another `reduction`."""
    if reduction == "mean":
        return lnp.mean(losses)
    if reduction == "sum":
        return lnp.sum(losses)
    if reduction == "none":
        return losses
    raise ValueError(f"{name}: reduction is 'mean', 'sum' or 'none', got {reduction!r}")
