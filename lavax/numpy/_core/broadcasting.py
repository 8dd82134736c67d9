"""Common shapes, and values broadcast to them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import ShapeError
from lavax.ir.types import DType, TensorType
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, Operand, Splat, as_operand, as_value, cast, constant_of, own
from lavax.numpy._core.promotion import promote
from lavax.numpy._core.shape_arguments import as_shape
from lavax.tracer import bind, with_weak
from lavax.tracer.values.value import Value

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]

Shape = tuple[int, ...]


def _combine(shapes: Sequence[Shape]) -> tuple[Shape, tuple[int, int, int] | None]:
    """The common shape, and if there is none: (an axis counted from the end, two extents that differ)."""
    rank = max((len(shape) for shape in shapes), default=0)
    common = [1] * rank
    for shape in shapes:
        for axis in range(-len(shape), 0):
            if shape[axis] == 1 or shape[axis] == common[axis]:
                continue
            if common[axis] != 1:
                return (), (axis, common[axis], shape[axis])
            common[axis] = shape[axis]
    return tuple(common), None


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The common shape of arrays of `shapes`: aligned at the last axis, extents of 1 are repeated.

    Raises ShapeError if two extents differ and neither is 1, DtypeError for anything but integers.
    """
    given = [as_shape(shape) for shape in shapes]
    common, conflict = _combine(given)
    if conflict:
        axis, first, second = conflict
        texts = " and ".join(map(str, given))
        raise shape_error(f"broadcast_shapes: shapes {texts} do not broadcast: axis {axis} has {first} and {second}")
    return common


def common_shape(
    name: str, operands: Sequence[Operand], mistake: Callable[[str], ShapeError] = shape_error
) -> Shape:
    """The shape of the elementwise operation `name` on `operands`. Raises ShapeError if they do not broadcast."""
    if len(operands) == 2:  # the usual case: one shape, or a scalar
        one, other = operands[0].abstract.type.shape, operands[1].abstract.type.shape
        if not other or one == other:
            return one
        if not one:
            return other
    shapes = {operand.abstract.type.shape for operand in operands}
    if len(shapes) > 1:
        shapes.discard(())
    if len(shapes) == 1:
        return shapes.pop()
    common, conflict = _combine([operand.shape for operand in operands])
    if conflict:
        axis, first, second = conflict
        given = " and ".join(str(operand.shape) for operand in operands)
        types = " and ".join(str(operand.type) for operand in operands)
        raise mistake(
            f"{name}: shapes {given} do not broadcast: axis {axis} has {first} and {second}; the operands are {types}"
        )
    return common


def spread(value: Value, shape: Shape) -> Value:
    """`value` repeated to `shape`, to which it must broadcast; itself if it has that shape."""
    if value.shape == shape:
        return own(value)
    axes = tuple(range(len(shape) - value.ndim, len(shape)))
    return with_weak(bind("broadcast", value, type=value.type.with_shape(shape), axes=axes), value.weak)


def spread_back(value: Value, axes: Sequence[int], shape: Shape) -> Value:
    """`value`, the result of a reduction over `axes` of an array of `shape`, repeated along them."""
    if not axes:
        return own(value)
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    return bind("broadcast", value, type=value.type.with_shape(shape), axes=kept)


def fit(operand: Operand, type: TensorType) -> Value:
    """`operand` as a value of `type`: cast, then broadcast; a scalar becomes a constant of `type` at once."""
    if isinstance(operand, Splat):
        return constant_of(operand, type)
    if operand.abstract.type is type:
        return operand
    return spread(cast(operand, type.dtype), type.shape)


def type_together(name: str, operands: Sequence[Operand], dtype: DType) -> TensorType:
    """The type, in `dtype`, of the operands of the elementwise operation `name`: an operand's own, if possible."""
    shape = common_shape(name, operands)
    for operand in operands:
        type = operand.abstract.type
        if type.dtype is dtype and type.shape == shape:
            return type
    return TensorType(shape, dtype)


def broadcast_to(array: ArrayLike, shape: int | Sequence[int], *, out_sharding: Any = None) -> Value:
    """`array` repeated to `shape`.

    Raises ShapeError if it does not broadcast to exactly that shape, DtypeError for anything but integers.
    """
    operand = as_operand(array)
    target = as_shape(shape)
    common, conflict = _combine([operand.shape, target])
    if conflict or common != target:
        raise shape_error(f"broadcast_to: {operand.type} does not broadcast to {target}")
    return own(operand) if operand is array and common == array.shape else fit(operand, operand.type.with_shape(target))


def broadcast_arrays(*arrays: ArrayLike) -> list[Value]:
    """`arrays` repeated to their common shape; each keeps its dtype."""
    values = [as_value(array) for array in arrays]
    if not values:
        return []
    shape = common_shape("broadcast_arrays", values)
    return [spread(value, shape) for value in values]


def common_dtype(values: Sequence[ArrayLike]) -> list[Value]:
    """`values` cast to their common dtype; each keeps its shape."""
    operands = [as_operand(value) for value in values]
    dtype, _ = promote(operands)
    return [fit(operand, operand.type.with_dtype(dtype)) for operand in operands]
