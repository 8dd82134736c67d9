"""Arrays in another shape, or with their axes in another order."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from lavax.ir.types import TensorType
from lavax.numpy._core.axes import Axis, normal_axes, normal_axis
from lavax.numpy._core.devices import copied
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, own
from lavax.numpy._core.shape_arguments import Shape, as_shape
from lavax.tracer.values.value import Value

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "matrix_transpose", "moveaxis", "ravel", "reshape",
    "rollaxis", "squeeze", "swapaxes", "transpose",
]  # fmt: skip


# The index that changes fastest from element to element: the last or the first.
Order: TypeAlias = Literal["C", "F"]


def _filled_in(shape: Shape, type: TensorType) -> Shape:
    """`shape` with the one extent -1 replaced by the extent that fits."""
    unknown = [axis for axis, extent in enumerate(shape) if extent == -1]
    known, wanted = math.prod(extent for extent in shape if extent != -1), shape
    if len(unknown) > 1 or min(shape, default=0) < -1:
        raise shape_error(f"reshape: {shape} may have one extent of -1 and no other negative one")
    if unknown and known:
        shape = tuple(type.size // known if extent == -1 else extent for extent in shape)
    if min(shape, default=0) < 0 or math.prod(shape) != type.size:
        raise shape_error(f"reshape: {type} with {type.size} elements does not become {wanted}")
    return shape


def _require_order(name: str, order: str) -> None:
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order is 'C' (the last index changes fastest) or 'F' (the first), got {order!r}")


def reshape(
    a: ArrayLike, shape: int | Sequence[int], order: Order = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Value:
    """`a` in another shape of equal size; one extent may be -1: the one that fits.

    `order` is the order of elements in both shapes: "C" with the last index changing fastest, "F" with the first.

    With `copy` True the result has its own memory; with False it must be `a` itself. Raises ShapeError if the numbers
    of elements differ, ValueError for another order, or if `copy` is False and the shape another one.
    """
    _require_order("reshape", order)
    value = as_value(a)
    extents = _filled_in(as_shape(shape), value.type)
    if copy is False and extents == value.shape:
        return copied("reshape", a, value, copy)
    if order == "C":
        result = reshaped(value, extents)
    else:
        result = _reversed(reshaped(_reversed(value), extents[::-1]))
    return copied("reshape", a, result, copy)


def _reversed(value: Value) -> Value:
    """`value` with its axes in the opposite order."""
    return transposed(value, range(value.ndim)[::-1])


def ravel(a: ArrayLike, order: Order = "C", *, out_sharding: Any = None) -> Value:
    """`a` as one axis: with the last index changing fastest ("C"), or with the first ("F").

    Raises ValueError for another order.
    """
    _require_order("ravel", order)
    value = as_value(a)
    return reshaped(value if order == "C" else _reversed(value), (value.size,))


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Value:
    """`a` with its axes in the order `axes`; None reverses them.

    Raises ShapeError if `axes` is not a permutation of the axes.
    """
    value = as_value(a)
    if axes is None:
        return transposed(value, range(value.ndim)[::-1])
    order = normal_axes("transpose", tuple(axes), value.type)
    if len(order) != value.ndim:
        raise shape_error(f"transpose: axes {tuple(axes)} are not all axes of {value.type}")
    return transposed(value, order)


def matrix_transpose(x: ArrayLike) -> Value:
    """`x` with its last two axes exchanged. Raises ShapeError below rank 2."""
    value = as_value(x)
    if value.ndim < 2:
        raise shape_error(f"matrix_transpose: {value.type} needs at least two axes")
    return swapaxes(value, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Value:
    """`a` with two of its axes exchanged."""
    value = as_value(a)
    first, second = (normal_axis("swapaxes", axis, value.type) for axis in (axis1, axis2))
    order = list(range(value.ndim))
    order[first], order[second] = second, first
    return transposed(value, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    """`a` with the axes `source` moved to the positions `destination`; the others keep their order.

    Raises ShapeError if there is no such axis, or `source` and `destination` differ in length.
    """
    value = as_value(a)
    origins = normal_axes("moveaxis", source, value.type)
    targets = normal_axes("moveaxis", destination, value.type)
    if len(origins) != len(targets):
        raise shape_error(f"moveaxis: source names {len(origins)} axes, destination {len(targets)}")
    order = [axis for axis in range(value.ndim) if axis not in origins]
    for target, origin in sorted(zip(targets, origins, strict=True)):
        order.insert(target, origin)
    return transposed(value, order)


def expand_dims(a: ArrayLike, axis: int | Sequence[int] = 0) -> Value:
    """`a` with new axes of extent 1 at the positions `axis` of the result."""
    value = as_value(a)
    rank = value.ndim + (len(axis) if isinstance(axis, Sequence) else 1)
    added = normal_axes("expand_dims", axis, value.type, rank)
    extents = iter(value.shape)
    return reshaped(value, tuple(1 if d in added else next(extents) for d in range(rank)))


def squeeze(a: ArrayLike, axis: Axis = None) -> Value:
    """`a` without the axes `axis`, which must have extent 1; None: without all axes of extent 1.

    Raises ShapeError if one has another extent.
    """
    value = as_value(a)
    if axis is None:
        return reshaped(value, tuple(extent for extent in value.shape if extent != 1))
    gone = normal_axes("squeeze", axis, value.type)
    wrong = [d for d in gone if value.shape[d] != 1]
    if wrong:
        raise shape_error(f"squeeze: axis {wrong[0]} of {value.type} has extent {value.shape[wrong[0]]}, not 1")
    return reshaped(value, tuple(extent for d, extent in enumerate(value.shape) if d not in gone))


def atleast_1d(*arys: ArrayLike) -> Any:
    """An array with one axis if it has none; of several arrays a list of such."""
    return _each_of(arys, _with_an_axis)


def atleast_2d(*arys: ArrayLike) -> Any:
    """An array with new axes in front to make two if it has fewer; of several arrays a list of such."""
    return _each_of(arys, _with_two_axes)


def atleast_3d(*arys: ArrayLike) -> Any:
    """An array with new axes to make three if it has fewer: one axis comes in the middle, two in front.

    Of several arrays a list of such.
    """
    return _each_of(arys, _with_three_axes)


def _each_of(arrays: Sequence[ArrayLike], function: Callable[[ArrayLike], Value]) -> Any:
    return function(arrays[0]) if len(arrays) == 1 else [function(array) for array in arrays]


def _with_an_axis(x: ArrayLike) -> Value:
    value = as_value(x)
    return own(value) if value.ndim else reshaped(value, (1,))


def _with_two_axes(x: ArrayLike) -> Value:
    value = as_value(x)
    return reshaped(value, (1,) * (2 - value.ndim) + value.shape) if value.ndim < 2 else own(value)


def _with_three_axes(x: ArrayLike) -> Value:
    value = as_value(x)
    shapes = {0: (1, 1, 1), 1: (1, *value.shape, 1), 2: (*value.shape, 1)}
    return reshaped(value, shapes[value.ndim]) if value.ndim < 3 else own(value)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Value:
    """`a` with `axis` moved in front of the axis `start`.

    Raises ShapeError if there is no such axis or position.
    """
    value = as_value(a)
    start = whole_number("start", start)
    along, place = normal_axis("rollaxis", axis, value.type), start + value.ndim * (start < 0)
    if not 0 <= place <= value.ndim:
        raise shape_error(f"rollaxis: start={start} is not a place among the axes of {value.type}")
    return moveaxis(value, along, place - (along < place))
