"""Positions of the elements that are not zero. Their number, and so the shape, depends on data.

Outside `compile` that number is read from the device, and all else stays there; inside, `size` gives it.
"""
from __future__ import annotations

from lavax.ir.types import TensorType, bool_, int32
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike, Scalar, as_positions, as_value, cast
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.elementwise.arithmetic import add
from lavax.numpy.elementwise.comparison import less, where
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = ["argwhere", "flatnonzero", "nonzero"]

USE_SIZE = "give the number of entries as size=, or choose by where(condition, x, y)"


def counted(mask: Value) -> Value:
    """For each entry of a one-axis mask, the number of true entries up to it."""
    return bind("cumulative_sum", cast(mask, int32), axis=0)


def true_places(name: str, mask: Value, size: int | None, advice: str) -> tuple[Value, Value | None]:
    """The positions of a one-axis mask's true entries, and, if `size` may be too large, whether each is one.

    Excess positions equal the mask's length.
    """
    if not mask.size:
        kind = TensorType((length_of(name, constant(0, TensorType((), int32)), size, advice),), int32)
        return constant(0, kind), constant(False, kind.with_dtype(bool_))
    running = counted(mask)
    total = reshaped(cut(running, 0, mask.size - 1, mask.size), ())
    length = length_of(name, total, size, advice)
    numbers = iota(TensorType((length,), int32), 0)
    places = bind("search_sorted", running, add(numbers, 1), right=False)
    return places, None if size is None else less(numbers, total)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Scalar | tuple[Scalar, ...] | None = None
) -> tuple[Value, ...]:
    """The positions of the elements that are not zero, in row-major order: one array per axis.

    `size` is the number of positions returned: the first ones; if there are fewer, `fill_value` (0, or one per axis)
    fills up. It is required inside `compile`, which raises ConcretizationError without it. Raises ShapeError for a
    scalar.
    """
    value = as_value(a)
    if not value.ndim:
        raise shape_error("nonzero: a scalar has no positions: use atleast_1d")
    places, is_one = true_places("nonzero", ravel(as_truth(value)), size, USE_SIZE)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * value.ndim
    results, flat = [], places
    for extent, fill in reversed(list(zip(value.shape, fills, strict=True))):
        coordinate = bind("remainder", flat, constant(max(extent, 1), flat.type))
        flat = bind("divide", flat, constant(max(extent, 1), flat.type))
        results.append(coordinate if is_one is None else where(is_one, coordinate, fill))
    return tuple(map(as_positions, reversed(results)))


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Scalar | None = None) -> Value:
    """The positions of the elements of the flattened `a` that are not zero; `size` as in `nonzero`."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Scalar | None = None) -> Value:
    """The positions of the elements that are not zero as rows of an array; `size` as in `nonzero`."""
    value = as_value(a)
    if not value.ndim:
        places = nonzero(reshaped(value, (1,)), size=size, fill_value=fill_value)[0]
        return reshaped(cut(reshaped(places, (*places.shape, 1)), 1, 0, 0), (places.size, 0))
    columns = [reshaped(place, (place.size, 1)) for place in nonzero(value, size=size, fill_value=fill_value)]
    return columns[0] if len(columns) == 1 else bind("concatenate", *columns, axis=1)
