"""Arrays split into parts."""
from __future__ import annotations

from collections.abc import Iterable

from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error, zero_step_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

__all__ = ["array_split", "dsplit", "hsplit", "split", "unstack", "vsplit"]


def split(ary: ArrayLike, indices_or_sections: int | Iterable[int], axis: int = 0) -> list[Value]:
    """`ary` split along `axis` into a number of equal parts, or before the given positions.

    Raises ShapeError if the extent is not a multiple of the number of parts, ZeroStepError if that is 0.
    """
    value = as_value(ary)
    along = normal_axis("split", axis, value.type)
    extent = value.shape[along]
    if isinstance(indices_or_sections, Iterable):
        return _cut_at(value, along, indices_or_sections)
    parts = whole_number("the number of parts", indices_or_sections)
    if parts < 1 or extent % parts:
        mistake = shape_error if parts else zero_step_error
        raise mistake(f"split: axis {along} of {value.type} does not make {parts} equal parts")
    return _cut_at(value, along, range(extent // parts, extent, extent // parts) if extent else [0] * (parts - 1))


def array_split(ary: ArrayLike, indices_or_sections: int | Iterable[int], axis: int = 0) -> list[Value]:
    """As `split`, but if the extent is not a multiple of the number of parts, the first parts are longer by one.

    Raises ShapeError for less than one part, for 0 the ZeroStepError among them.
    """
    value = as_value(ary)
    along = normal_axis("array_split", axis, value.type)
    if isinstance(indices_or_sections, Iterable):
        return _cut_at(value, along, indices_or_sections)
    parts = whole_number("the number of parts", indices_or_sections)
    if parts < 1:
        mistake = shape_error if parts else zero_step_error
        raise mistake(f"array_split: {parts} is not a number of parts")
    each, longer = divmod(value.shape[along], parts)
    return _cut_at(value, along, [part * each + min(part, longer) for part in range(1, parts)])


def _cut_at(value: Value, axis: int, positions: Iterable[int]) -> list[Value]:
    extent = value.shape[axis]
    ends = [slice(whole_number("a position", position)).indices(extent)[1] for position in positions]
    return [
        cut(value, axis, start, max(start, end)) for start, end in zip([0, *ends], [*ends, extent], strict=True)
    ]


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Value, ...]:
    """The entries of `x` along `axis`, without it."""
    value = as_value(x)
    along = normal_axis("unstack", axis, value.type)
    shape = (*value.shape[:along], *value.shape[along + 1 :])
    return tuple(reshaped(cut(value, along, i, i + 1), shape) for i in range(value.shape[along]))


def _split_along(name: str, axis: int, x: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    value = as_value(x)
    if value.ndim <= axis:
        raise shape_error(f"{name}: {value.type} needs at least {axis + 1} axes")
    return split(value, indices_or_sections, axis)


def hsplit(ary: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    """`split` along axis 1, or axis 0 of an array of one axis."""
    return _split_along("hsplit", min(as_value(ary).ndim, 2) - 1, ary, indices_or_sections)


def vsplit(ary: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    """`split` along axis 0. Raises ShapeError below rank 2."""
    if as_value(ary).ndim < 2:
        raise shape_error(f"vsplit: {as_value(ary).type} needs at least 2 axes")
    return _split_along("vsplit", 0, ary, indices_or_sections)


def dsplit(ary: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    """`split` along axis 2. Raises ShapeError below rank 3."""
    return _split_along("dsplit", 2, ary, indices_or_sections)
