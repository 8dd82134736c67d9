"""Values reshaped, transposed, cut and padded. Arguments are not checked."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import own
from lavax.numpy._core.shape_arguments import Shape
from lavax.tracer import bind, with_weak
from lavax.tracer.values.value import Value


def reshaped(value: Value, shape: Shape) -> Value:
    """`value` in a shape of equal size; itself if it has that shape."""
    if value.shape == shape:
        return own(value)
    return with_weak(bind("reshape", value, type=value.type.with_shape(shape)), value.weak)


def transposed(value: Value, axes: Sequence[int]) -> Value:
    """`value` with its axes in the order `axes`; itself if they are in that order."""
    if tuple(axes) == tuple(range(value.ndim)):
        return own(value)
    return with_weak(bind("transpose", value, axes=tuple(axes)), value.weak)


def cut(value: Value, axis: int, start: int, limit: int, step: int = 1) -> Value:
    """The elements start, start + step, … below `limit` of `axis`; `value` itself if these are all."""
    if (start, limit, step) == (0, value.shape[axis], 1):
        return own(value)
    starts, limits, steps = [0] * value.ndim, list(value.shape), [1] * value.ndim
    starts[axis], limits[axis], steps[axis] = start, limit, step
    return bind("slice", value, start=tuple(starts), limit=tuple(limits), stride=tuple(steps))


def padded(value: Value, low: Sequence[int], high: Sequence[int]) -> Value:
    """`value` with `low` zeros before each axis and `high` after it; itself if these are all 0."""
    if not any((*low, *high)):
        return own(value)
    zero = value.type.dtype.number(0)
    return bind("pad", value, low=tuple(low), high=tuple(high), interior=(0,) * value.ndim, value=zero)


def rows(value: Value) -> list[Value]:
    """The entries of `value` along its first axis. Raises ShapeError for a scalar."""
    if not value.ndim:
        raise shape_error(f"{value.type} has no axis to take entries along")
    return [reshaped(cut(value, 0, i, i + 1), value.shape[1:]) for i in range(value.shape[0])]
