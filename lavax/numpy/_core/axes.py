"""Axes as users give them, normalized."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from lavax.ir.types import TensorType
from lavax.numpy._core.errors import axis_error, shape_error
from lavax.numpy._core.number_arguments import whole_number

Axis: TypeAlias = int | Sequence[int] | None


def normal_axis(name: str, axis: int, type: TensorType, rank: int | None = None) -> int:
    """`axis` counted from the front; `rank` is given if axes are counted in the result.

    Raises AxisError if there is no such axis.
    """
    position = whole_number("axis", axis)
    extent = type.rank if rank is None else rank
    if not -extent <= position < extent:
        range_text = f"it must be from {-extent} to {extent - 1}" if extent else "it has no axes"
        raise axis_error(f"{name}: axis {position} is not an axis of {type}: {range_text}")
    return position % extent


def normal_axes(name: str, axis: Axis, type: TensorType, rank: int | None = None) -> tuple[int, ...]:
    """The distinct axes of `axis`, counted from the front, in the given order; None: all axes.

    Raises AxisError if there is no such axis, ShapeError if one is named twice.
    """
    if axis is None:
        return tuple(range(type.rank if rank is None else rank))
    given = axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple(normal_axis(name, one, type, rank) for one in given)
    if len(set(axes)) != len(axes):
        raise shape_error(f"{name}: axes {tuple(given)} name an axis of {type} twice")
    return axes


def rising_axes(name: str, axis: Axis, type: TensorType) -> tuple[int, ...]:
    """As `normal_axes`, in rising order."""
    return tuple(sorted(normal_axes(name, axis, type)))
