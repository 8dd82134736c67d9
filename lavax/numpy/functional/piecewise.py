"""Piecewise functions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.elementwise.comparison import where
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["piecewise"]


def piecewise(x: ArrayLike, condlist: Sequence[Any] | ArrayLike, funclist: Sequence[Any], *args: Any) -> Value:
    """For each element the function (or number) of the last condition that is true, applied to it.

    If there is one function more than conditions, it applies where none is true; else the result there is 0. Every
    function is computed for all elements. Raises ShapeError if conditions and functions do not fit in number.
    """
    value = as_value(x)
    given = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    choices = list(funclist)
    otherwise: Any = choices.pop() if len(choices) == len(given) + 1 else 0
    if len(choices) != len(given):
        raise shape_error(f"piecewise: {len(given)} conditions for {len(funclist)} functions")
    result = _applied(otherwise, value, args)
    for condition, choice in zip(given, choices, strict=True):
        result = where(condition, _applied(choice, value, args), result)
    return bind("cast", as_value(result), type=value.type.with_shape(as_value(result).shape))


def _applied(choice: Any, value: Value, args: tuple[Any, ...]) -> ArrayLike:
    result: ArrayLike = choice(value, *args) if callable(choice) else choice
    return result
