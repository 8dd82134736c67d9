"""Windows read from and written to places that arrays name, in the general form of XLA."""
from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.lax.operands import of_one_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


class GatherScatterMode(enum.Enum):
    """What happens to windows that are not inside the array."""

    CLIP = 0  # they are moved inside
    FILL_OR_DROP = 1  # they are read as a number, and are not written
    PROMISE_IN_BOUNDS = 2  # there are none
    ONE_HOT = 3

    @staticmethod
    def from_any(mode: Any) -> GatherScatterMode:
        """The mode of that name, or the mode itself; None is FILL_OR_DROP."""
        if isinstance(mode, GatherScatterMode):
            return mode
        names = {
            None: GatherScatterMode.FILL_OR_DROP,
            "clip": GatherScatterMode.CLIP,
            "fill": GatherScatterMode.FILL_OR_DROP,
            "drop": GatherScatterMode.FILL_OR_DROP,
            "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
        }
        if mode not in names:
            raise ValueError(f"lax: a mode is 'clip', 'fill', 'drop' or 'promise_in_bounds', got {mode!r}")
        return names[mode]


class GatherDimensionNumbers(NamedTuple):
    """The axes of `gather`.

    `offset_dims`: those of the result along which windows lie. `collapsed_slice_dims`: axes of the operand along which
    windows have one element and no axis. `start_index_map`: the operand's axis of each number of an index.
    `operand_batching_dims` and `start_indices_batching_dims`: axes of operand and indices that go together.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The axes of `scatter`, as those of `gather`: of the updates and the operand."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Windows:
    """Where windows lie: for each axis of the operand, positions over the axes of indices, then those of a window."""

    places: tuple[Value, ...]
    is_inside: Any  # whether a window is inside the operand, over the same axes
    order: tuple[int, ...]  # from those axes to those of the result


def _windows(
    name: str,
    operand: Value,
    indices: Value,
    sizes: Sequence[int],
    along: Sequence[int],
    collapsed: Sequence[int],
    index_map: Sequence[int],
    batching: tuple[Sequence[int], Sequence[int]],
    mode: GatherScatterMode,
) -> _Windows:
    """`along`: the axes of the result, or of the updates, that are those of a window."""
    outer = indices.shape[:-1]
    without = {*collapsed, *batching[0]}
    inner = [axis for axis in range(operand.ndim) if axis not in without]
    if len(along) != len(inner) or len(index_map) != indices.shape[-1]:
        raise shape_error(
            f"{name}: dimension_numbers do not fit {operand.type} and indices {indices.type}, whose last axis holds "
            f"the numbers of an index: {len(inner)} axes of windows, {len(index_map)} numbers"
        )
    if any(not 0 <= size <= extent for size, extent in zip(sizes, operand.shape, strict=True)):
        raise shape_error(f"{name}: windows of {tuple(sizes)} are not within {operand.type}")
    rank = len(outer) + len(inner)

    def spread(value: Value, axes: Sequence[int]) -> Value:
        shape = [1] * rank
        for axis, extent in zip(axes, value.shape, strict=True):
            shape[axis] = extent
        return lnp.reshape(value, shape)

    is_inside: Any = True
    places = []
    for axis, extent in enumerate(operand.shape):
        start: Any = lnp.zeros((1,) * rank, lnp.int32)
        if axis in index_map:
            last = extent - sizes[axis]
            given = indices[..., list(index_map).index(axis)]
            if given.type.dtype.bits < 32:  # the extent may be beyond its numbers
                given = lnp.astype(given, lnp.int32)
            if mode is GatherScatterMode.FILL_OR_DROP:
                fits = (given >= 0) & (given <= last)
                is_inside = is_inside & spread(fits, range(len(outer)))
            start = spread(lnp.astype(lnp.clip(given, 0, last), lnp.int32), range(len(outer)))
        if axis in batching[0]:
            partner = batching[1][list(batching[0]).index(axis)]
            start = start + spread(lnp.arange(extent, dtype=lnp.int32), [partner])
        if axis in inner:
            start = start + spread(lnp.arange(sizes[axis], dtype=lnp.int32), [len(outer) + inner.index(axis)])
        places.append(start)
    shape = (*outer, *(sizes[axis] for axis in inner))
    outside = iter(range(len(outer)))
    order = tuple(
        len(outer) + list(along).index(axis) if axis in along else next(outside) for axis in range(rank)
    )
    return _Windows(tuple(lnp.broadcast_to(place, shape) for place in places), is_inside, order)


def _filling(value: Value, fill_value: Any) -> Any:
    if fill_value is not None:
        return fill_value
    numpy = value.type.dtype
    if numpy.is_float:
        return lnp.nan
    if numpy.kind == "bool":
        return True
    limits = np.iinfo(numpy.numpy)
    return limits.min if numpy.kind == "int" else limits.max


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Value:
    """Windows of `slice_sizes` at the places that the last axis of `start_indices` names.

    A window that is not inside is moved inside, or with the mode "fill" read as `fill_value` (by default NaN, the least
    signed or the greatest unsigned integer). `unique_indices` and `indices_are_sorted` change nothing. Raises
    ShapeError for dimension_numbers that do not fit.
    """
    value, indices, numbers = as_value(operand), as_value(start_indices), dimension_numbers
    held = GatherScatterMode.from_any("promise_in_bounds" if mode is None else mode)
    windows = _windows(
        "lax.gather", value, indices, slice_sizes, numbers.offset_dims, numbers.collapsed_slice_dims,
        numbers.start_index_map, (numbers.operand_batching_dims, numbers.start_indices_batching_dims), held,
    )  # fmt: skip
    read = value[windows.places] if value.ndim else lnp.broadcast_to(value, indices.shape[:-1])
    if held is GatherScatterMode.FILL_OR_DROP and windows.is_inside is not True:
        filling = lnp.asarray(_filling(value, fill_value), dtype=value.dtype)
        read = lnp.where(windows.is_inside, read, filling)
    found: Value = lnp.transpose(read, windows.order)
    return found


def _scattered(
    method: str,
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    numbers: ScatterDimensionNumbers,
    mode: Any,
) -> Value:
    value, new = of_one_dtype("scatter", operand, updates)
    indices = as_value(scatter_indices)
    held, name = GatherScatterMode.from_any(mode), f"lax.scatter, {method}"
    without = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    extents = iter(new.shape[axis] for axis in numbers.update_window_dims)
    sizes = [1 if axis in without else next(extents, 1) for axis in range(value.ndim)]
    windows = _windows(
        name, value, indices, sizes, numbers.update_window_dims, numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        (numbers.operand_batching_dims, numbers.scatter_indices_batching_dims), held,
    )  # fmt: skip
    if new.ndim != len(windows.order):
        raise shape_error(f"{name}: updates {new.type} have axes of indices and of windows: {len(windows.order)}")
    back = lnp.transpose(new, np.argsort(windows.order).tolist())
    places = list(windows.places)
    if held is GatherScatterMode.FILL_OR_DROP and windows.is_inside is not True:
        places[0] = lnp.where(windows.is_inside, places[0], value.shape[0])
    array: Any = value
    written: Value = getattr(array.at[tuple(places)], method)(back, mode="drop")
    return written


def _scatter(method: str, text: str) -> Callable[..., Value]:
    def scatter(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Value:
        return _scattered(method, operand, scatter_indices, updates, dimension_numbers, mode)

    scatter.__doc__ = (
        f"The array with windows of `updates` {text} at the places that the last axis of `scatter_indices` names. "
        "Windows that are not inside are left out, or moved inside with the mode 'clip'."
    )
    return scatter


scatter = _scatter("set", "written")
scatter_add = _scatter("add", "added")
scatter_sub = _scatter("subtract", "subtracted")
scatter_mul = _scatter("multiply", "multiplied")
scatter_min = _scatter("min", "joined by the lesser of both")
scatter_max = _scatter("max", "joined by the greater of both")


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Value], Value],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Value:
    """The array with `func` applied to the elements of windows, of the updates' shape; each place is named once."""
    value = as_value(operand)
    hit = _scattered("set", lnp.zeros(value.shape, bool), scatter_indices, lnp.ones(update_shape, bool),
                     dimension_numbers, mode)  # fmt: skip
    changed: Value = lnp.where(hit, lnp.astype(func(value), value.dtype), value)
    return changed
