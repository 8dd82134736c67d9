"""Sorted elements: NaN behind all numbers, equal elements in their original order."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import complex_of, int32
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_positions, as_value, cast
from lavax.numpy._core.promotion import floating
from lavax.numpy._core.sequences import parts_of
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.sorting.selection import falling_order, order_of_greatest
from lavax.tracer import bind, with_weak
from lavax.tracer.values.value import Value

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex", "top_k"]


class TopK(NamedTuple):
    """The result of `top_k`."""

    values: Value
    indices: Value


def _line(name: str, x: ArrayLike, axis: int | None) -> tuple[Value, int]:
    """`x` with at least one axis, and the axis to sort along; None flattens."""
    value = as_value(x)
    if axis is None:
        return ravel(value), 0
    if not value.ndim:
        raise shape_error(f"{name}: {value.type} has no axis to sort along: axis=None takes it as one element")
    return value, normal_axis(name, axis, value.type)


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    descending: bool = False,
    stable: bool = True,
) -> Value:
    """`a` in rising order along `axis` (None: flattened), NaN last; with `descending` the reverse of that.

    The sort is stable whatever `stable` is; `kind` and `order` change nothing.
    """
    value, along = _line("sort", a, axis)
    result = with_weak(bind("sort", value, axis=along), value.weak)
    return flip(result, along) if descending else result


def sort_complex(a: ArrayLike) -> Value:
    """`a` as complex numbers in rising order along its last axis: by real parts, equal ones by imaginary parts."""
    value = as_value(a)
    return sort(cast(value, complex_of(floating(value.type.dtype).part)))


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    descending: bool = False,
    stable: bool = True,
    dtype: Any = None,
) -> Value:
    """The positions along `axis` (None: in the flattened array) that put `a` in rising order, NaN last.

    With `descending` in falling order, NaN first. Equal elements keep their order, whatever `stable` is; `kind` and
    `order` change nothing. `dtype` is another dtype of the positions.
    """
    value, along = _line("argsort", a, axis)
    places = falling_order(value, along) if descending else bind("sort_order", value, axis=along)
    return cast(places, default_integer() if dtype is None else canonical_dtype(dtype))


def lexsort(keys: Sequence[ArrayLike] | Value, axis: int = -1) -> Value:
    """The positions along `axis` that put elements in order by the last key, ties by the one before it, …"""
    rows = [as_value(key) for key in parts_of("lexsort", keys)]
    along = normal_axis("lexsort", axis, rows[0].type)
    order = bind("sort_order", rows[0], axis=along)
    for key in rows[1:]:
        then = bind("sort_order", take_along_axis(key, order, along, mode="promise_in_bounds"), axis=along)
        order = take_along_axis(order, then, along, mode="promise_in_bounds")
    return as_positions(order)


def top_k(x: ArrayLike, k: int, axis: int = -1) -> TopK:
    """The `k` greatest elements along `axis`, greatest first, and their int32 positions; NaN counts as greatest.

    Raises ShapeError if there are fewer than `k`.
    """
    return greatest(x, k, axis, signed_zeros=False)


def greatest(x: ArrayLike, k: int, axis: int, signed_zeros: bool) -> TopK:
    """As `top_k`; with `signed_zeros` zero is greater than minus zero."""
    value, along = _line("top_k", x, axis)
    count = whole_number("k", k)
    if not 0 <= count <= value.shape[along]:
        raise shape_error(f"top_k: k={count} of {value.type} along axis {along}, which has {value.shape[along]}")
    indices = order_of_greatest(value, count, along, signed_zeros)
    return TopK(take_along_axis(value, indices, along, mode="promise_in_bounds"), indices)


def _check_kth(name: str, kth: int | Sequence[int], value: Value, along: int) -> None:
    extent = value.shape[along]
    for place in kth if isinstance(kth, Sequence) else (kth,):
        if not -extent <= whole_number("kth", place) < extent:
            raise shape_error(f"{name}: kth={place} is outside axis {along} of {value.type}")


def partition(a: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Value:
    """`a` with the element at `kth` along `axis` where sorting puts it, smaller ones before it: `sort`, in fact."""
    value, along = _line("partition", a, axis)
    _check_kth("partition", kth, value, along)
    return sort(value, along)


def argpartition(a: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Value:
    """The positions that `partition` takes elements from: those of `argsort`."""
    value, along = _line("argpartition", a, axis)
    _check_kth("argpartition", kth, value, along)
    return argsort(value, along, dtype=int32)

