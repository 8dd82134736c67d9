"""Shapes: broadcasting, reshaping, joining and dividing, choosing."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.lax.operands import known_number, of_one_dtype
from lavax.numpy._core.errors import axis_error, dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy._core.shape_arguments import as_shape
from lavax.tracer import bind
from lavax.tracer.values.value import Value

broadcast_shapes = lnp.broadcast_shapes


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Value:
    """`operand` repeated along new axes of `sizes`, which come first."""
    value = as_value(operand)
    return lnp.broadcast_to(value, (*sizes, *value.shape))


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Value:
    """`operand` as an array of `shape`, of which its axes are `broadcast_dimensions`. Raises ShapeError."""
    value, places = as_value(operand), tuple(broadcast_dimensions)
    fits = len(places) == value.ndim == len(set(places)) and all(0 <= at < len(shape) for at in places)
    if not fits or any(extent not in (1, shape[at]) for at, extent in zip(places, value.shape, strict=True)):
        raise shape_error(
            f"lax.broadcast_in_dim: broadcast_dimensions {places} must name a place in {tuple(shape)} for each axis of "
            f"{value.type}, with equal extents or 1"
        )
    along = [1] * len(shape)
    for at, extent in zip(places, value.shape, strict=True):
        along[at] = extent
    in_order = lnp.transpose(value, sorted(range(value.ndim), key=lambda axis: places[axis]))
    return lnp.broadcast_to(lnp.reshape(in_order, along), shape)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Value:
    """`arr` in the shape of the other array."""
    return lnp.broadcast_to(arr, as_value(like_arr).shape)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Value:
    """x with axes of extent 1 in front, `rank` in all."""
    value = as_value(x)
    if rank < value.ndim:
        raise shape_error(f"lax.broadcast_to_rank: {value.type} has more than {rank} axes")
    return lnp.reshape(value, (1,) * (rank - value.ndim) + value.shape)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Value:
    """The axes from `start_dimension` up to `stop_dimension` as one."""
    value = as_value(operand)
    first, last, _ = slice(start_dimension, stop_dimension).indices(value.ndim)
    return lnp.reshape(value, (*value.shape[:first], math.prod(value.shape[first:last]), *value.shape[last:]))


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Value:
    """Arrays of one dtype joined along an axis."""
    return lnp.concatenate(of_one_dtype("concatenate", *operands), axis=dimension)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Value:
    """The array with axes of extent 1 at these places of the result."""
    return lnp.expand_dims(array, tuple(dimensions))


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Value:
    """The array with `padding_value` before, after and between the elements of each axis: (low, high, interior).

    Negative numbers cut. Raises ShapeError for another number of axes, DtypeError for anything but integers.
    """
    value, fill = of_one_dtype("pad", operand, padding_value)
    config = [as_shape(each, "lax.pad: a number in padding_config") for each in padding_config]
    if len(config) != value.ndim or fill.ndim or any(between < 0 for _, _, between in config):
        raise shape_error(
            f"lax.pad: padding_config has (low, high, interior) for each axis of {value.type}, interior not negative, "
            f"and padding_value is a scalar; got {config} and {fill.type}"
        )
    low, high, interior = (tuple(each[k] for each in config) for k in range(3))
    attrs: dict[str, Any] = dict(
        low=tuple(max(0, width) for width in low), high=tuple(max(0, width) for width in high), interior=interior
    )
    number = known_number(fill)
    if number is not None:
        made = bind("pad", value, value=value.type.dtype.number(number), **attrs)
    else:
        zero = value.type.dtype.number(0)
        made = bind("pad", value, value=zero, **attrs)
        inside = bind("pad", lnp.ones(value.shape, bool), value=False, **attrs)
        made = lnp.where(inside, made, fill)
    cut = tuple(
        slice(max(0, -before), extent - max(0, -after))
        for before, after, extent in zip(low, high, made.shape, strict=True)
    )
    return made[cut]


def reshape(
    operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Value:
    """The elements in another shape, of the array with its axes in the order `dimensions` if that is given."""
    value = as_value(operand)
    return lnp.reshape(value if dimensions is None else lnp.transpose(value, tuple(dimensions)), tuple(new_sizes))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Value:
    """The array with these axes reversed."""
    return lnp.flip(operand, tuple(dimensions))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Value:
    """The array without these axes, whose extent is 1."""
    return lnp.squeeze(array, tuple(dimensions))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Value]:
    """Parts of these extents along an axis. Raises ShapeError if they do not sum to the axis's."""
    value = as_value(operand)
    if sum(sizes) != value.shape[axis]:
        raise shape_error(f"lax.split: sizes {tuple(sizes)} must sum to axis {axis} of {value.type}")
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes) - 1)]
    return list(lnp.split(value, ends, axis))


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Value:
    """Arrays of one shape along a new axis."""
    return lnp.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Value, ...]:
    """The arrays along an axis."""
    return tuple(lnp.unstack(x, axis=axis))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Value:
    """The array repeated along each axis."""
    return lnp.tile(operand, tuple(reps))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Value:
    """The array with its axes in the order `permutation`. Raises AxisError."""
    value = as_value(operand)
    if sorted(permutation) != list(range(value.ndim)):
        raise axis_error(f"lax.transpose: {tuple(permutation)} does not name each axis of {value.type} once")
    return lnp.transpose(value, tuple(permutation))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Value:
    """`on_true` where `pred` holds, else `on_false`, of one shape and dtype; `pred` has that shape or is a scalar."""
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Value:
    """Of each place, the case with the number `which`: a truth value for two cases, or an integer.

    Cases have one shape and dtype, and `which` has that shape or is a scalar. Raises ShapeError or DtypeError.
    """
    number, values = as_value(which), of_one_dtype("select_n", *cases)
    if not values or len({value.shape for value in values}) > 1 or number.shape not in ((), values[0].shape):
        raise shape_error(
            "lax.select_n: cases have one shape, and which has that shape or is a scalar; got "
            f"{', '.join(str(value.type) for value in (number, *values))}"
        )
    if not number.type.dtype.is_integer and (number.type.dtype.kind != "bool" or len(values) > 2):
        raise dtype_error(f"lax.select_n: which is an integer, or a truth value for two cases, got {number.type}")
    number = lnp.astype(number, lnp.int32)
    result = values[0]
    for place, value in enumerate(values[1:], 1):
        result = lnp.where(number >= place, value, result)
    return result


def shape_as_value(shape: Sequence[int]) -> Value:
    """A shape as an array of integers."""
    return lnp.asarray(tuple(shape), dtype=lnp.int32)
