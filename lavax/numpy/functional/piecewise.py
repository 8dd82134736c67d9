"""Piecewise functions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.numpy._core.broadcasting import broadcast_arrays
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.elementwise.comparison import where
from lavax.tracer import bind
from lavax.tracer.control_flow.branches import switch
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["piecewise"]


def piecewise(
    x: ArrayLike, condlist: Sequence[Any] | ArrayLike, funclist: Sequence[Any], *args: Any, **kw: Any
) -> Value:
    """For each element the function (or number) of the last condition that is true, applied to it, `args` and `kw`.

    Conditions broadcast against `x`; they are a sequence, or rows of one array.

    If there is one function more than conditions, it applies where none is true; else the result there is 0. Functions
    get one element, a scalar. All are computed for all elements, but gradients pass only through the one that applies,
    so that those of sqrt(x) where x > 0 are not NaN elsewhere. Raises ShapeError if conditions and functions do not fit
    in number.
    """
    value = as_value(x)
    conditions: Any = condlist
    rows = isinstance(conditions, (list, tuple)) or np.ndim(conditions) > value.ndim
    given = list(conditions) if rows else [conditions]
    choices = list(funclist)
    otherwise: Any = choices.pop() if len(choices) == len(given) + 1 else 0
    if len(choices) != len(given):
        raise shape_error(f"piecewise: {len(given)} conditions for {len(funclist)} functions")
    number: ArrayLike = np.int32(0)
    for position, condition in enumerate(given, 1):
        number = where(condition, np.int32(position), number)
    numbers, values = broadcast_arrays(number, value)
    branches = [_applied(choice, value, args, kw) for choice in (otherwise, *choices)]
    lines = (reshaped(each, (values.size,)) for each in (numbers, values))
    found: Value = vmap(lambda number, element: switch(number, branches, element))(*lines)
    return reshaped(found, values.shape)


def _applied(choice: Any, value: Value, args: tuple[Any, ...], kw: dict[str, Any]) -> Callable[[Value], Value]:
    """`choice` as a function of one element, whose result has the dtype of `value`."""

    def branch(element: Value) -> Value:
        result = as_value(choice(element, *args, **kw) if callable(choice) else choice)
        return bind("cast", result, type=value.type.with_shape(result.shape))

    return branch
