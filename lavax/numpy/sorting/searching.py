"""Positions in sorted arrays, membership, and choices by condition."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lavax.ir.types import bool_
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, Scalar, as_value
from lavax.numpy.arrays.data_dependent import nonzero
from lavax.numpy.arrays.joining import parts_of
from lavax.numpy.arrays.manipulation import flip, ravel, reshaped
from lavax.numpy.elementwise import comparison
from lavax.numpy.elementwise.comparison import equal, logical_not
from lavax.numpy.indexing.taking import take
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = ["choose", "digitize", "isin", "piecewise", "searchsorted", "select", "where"]


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    size: int | None = None,
    fill_value: Scalar | None = None,
) -> Any:
    """`x` where `condition` is true (not zero), else `y`, elementwise; with `condition` alone: `nonzero` of it.

    The gradient of the choice not taken is zero, but 0 times an infinity is NaN: keep both choices finite. Raises
    TypeError where one choice is given alone, ShapeError where shapes do not broadcast.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError("where takes a condition alone, or a condition and both choices")
    return comparison.where(condition, x, y)


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: Literal["left", "right"] = "left", sorter: ArrayLike | None = None
) -> Value:
    """For each element of `v` the int32 position in the sorted one-axis `a` before which it would go.

    `side` "left" is before its equals, "right" behind them; NaN is behind all numbers. `sorter` is what `argsort` of an
    `a` that is not sorted gives. Raises ValueError for another `side`, ShapeError where the sorted array does not have
    one axis.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', got {side!r}")
    row, values = common_dtype([a, v])
    if row.ndim != 1:
        raise shape_error(f"searchsorted: the sorted array must have one axis, got {row.type}")
    if sorter is not None:
        row = take(row, sorter)
    found = bind("search_sorted", row, reshaped(values, (values.size,)), right=side == "right")
    return reshaped(found, values.shape)


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Value:
    """The int32 number of the interval between `bins`, which rise or fall, that each element of `x` lies in.

    An interval holds its lower bound, or its upper one if `right`. Falling bins are known by their ends. Raises
    ShapeError for bins that do not have one axis.
    """
    edges = as_value(bins)
    if edges.ndim != 1:
        raise shape_error(f"digitize: the bins must have one axis, got {edges.type}")
    rising = searchsorted(edges, x, "left" if right else "right")
    if edges.size < 2:
        return rising
    backwards = searchsorted(flip(edges), x, "left" if right else "right")
    falling = bind("subtract", constant(edges.size, backwards.type), backwards)
    return comparison.where(comparison.less_equal(edges[0], edges[-1]), rising, falling)


def isin(
    element: ArrayLike, test_elements: ArrayLike, *, assume_unique: bool = False, invert: bool = False
) -> Value:
    """Whether each element of `element` is one of `test_elements`, as bool; the contrary if `invert`. NaN never is."""
    values, tests = common_dtype([element, test_elements])
    if not tests.size:
        return constant(invert, values.type.with_dtype(bool_))
    row = bind("sort", ravel(tests), axis=0)
    found = equal(take(row, searchsorted(row, values)), values)
    return logical_not(found) if invert else found


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Value:
    """Of the choices the one whose condition is the first to be true, elementwise; `default` where none is.

    Raises ShapeError where conditions and choices differ in number.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise shape_error(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    result: ArrayLike = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = comparison.where(condition, choice, result)
    return as_value(result)


def piecewise(x: ArrayLike, condlist: Sequence[Any] | ArrayLike, funclist: Sequence[Any], *args: Any) -> Value:
    """For each element the function (or number) of the last condition that is true, applied to it.

    One function more than conditions is for where none is; else 0. Every function is computed for all elements. Raises
    ShapeError where conditions and functions do not fit in number.
    """
    value = as_value(x)
    given = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    choices = list(funclist)
    otherwise: Any = choices.pop() if len(choices) == len(given) + 1 else 0
    if len(choices) != len(given):
        raise shape_error(f"piecewise: {len(given)} conditions for {len(funclist)} functions")
    result = _applied(otherwise, value, args)
    for condition, choice in zip(given, choices, strict=True):
        result = comparison.where(condition, _applied(choice, value, args), result)
    return bind("cast", as_value(result), type=value.type.with_shape(as_value(result).shape))


def _applied(choice: Any, value: Value, args: tuple[Any, ...]) -> ArrayLike:
    result: ArrayLike = choice(value, *args) if callable(choice) else choice
    return result


def choose(a: ArrayLike, choices: Sequence[ArrayLike] | Value, mode: Literal["clip", "wrap"] = "clip") -> Value:
    """For each element of the integers `a` the element of that choice; numbers outside are held or wrapped.

    Raises ShapeError for no choices.
    """
    rows = [as_value(choice) for choice in parts_of("choose", choices)]
    number = as_value(a)
    if mode == "wrap":
        number = number % len(rows)
    result = rows[-1]
    for place in range(len(rows) - 2, -1, -1):
        result = comparison.where(comparison.less_equal(number, place), rows[place], result)
    return result
