"""Sorting. Numbers ascend, false comes before true, NaN comes last.

Complex numbers ascend by their real parts, those with equal ones by their imaginary parts.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, int32


def _infer_sort(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    if not 0 <= attrs["axis"] < operand.rank:
        raise ShapeError(f"sort: axis {attrs['axis']} is not an axis of {operand}")
    return operand


def _infer_sort_order(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    return _infer_sort(operands, attrs, declared).with_dtype(int32)


def _infer_top_order(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    operand, axis, count = _infer_sort(operands, attrs, None), attrs["axis"], attrs["count"]
    if not 0 <= count <= operand.shape[axis]:
        raise ShapeError(f"top_order: axis {axis} of {operand} does not have {count} elements")
    return operand.with_shape((*operand.shape[:axis], count, *operand.shape[axis + 1 :])).with_dtype(int32)


def _infer_unsort(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, order = operands
    if order != _infer_sort_order((x,), attrs, None):
        raise ShapeError(f"unsort: the order {order} must be {x.with_dtype(int32)}")
    return x


def _infer_search_sorted(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    rows, values = operands
    if rows.dtype != values.dtype:
        raise DtypeError(f"search_sorted: operands must have one dtype, got {rows} and {values}")
    if not rows.rank == values.rank >= 1 or rows.shape[:-1] != values.shape[:-1]:
        raise ShapeError(f"search_sorted: {rows} and {values} must agree in all axes but the last")
    return values.with_dtype(int32)


def _evaluate_sort(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.sort(arrays[0], axis=attrs["axis"], kind="stable"))


def _evaluate_sort_order(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return np.argsort(arrays[0], axis=attrs["axis"], kind="stable").astype(dtype)


def _evaluate_top_order(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    (x,), axis = arrays, attrs["axis"]
    flipped = np.flip(x, axis)
    if attrs["signed_zeros"]:
        backwards = np.lexsort((~np.signbit(flipped), flipped), axis=axis)
    else:
        backwards = np.argsort(flipped, axis=axis, kind="stable")
    order = x.shape[axis] - 1 - np.flip(backwards, axis)
    return np.take(order, np.arange(attrs["count"]), axis).astype(dtype)


def _evaluate_unsort(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    x, order = arrays
    result = np.zeros(type.shape, dtype)
    np.put_along_axis(result, order.astype(np.int64), x, attrs["axis"])
    return result


def _evaluate_search_sorted(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    batch = prod(type.shape[:-1])
    rows, values = (array.reshape(batch, array.shape[-1]) for array in arrays)
    side: Literal["left", "right"] = "right" if attrs["right"] else "left"
    found = [np.searchsorted(row, wanted, side) for row, wanted in zip(rows, values, strict=True)]
    return np.array(found, dtype).reshape(type.shape)


define(Operation("sort", "routine", _infer_sort, _evaluate_sort, ("axis",)))
# The positions in the operand of the sorted elements; equal elements keep their order.
define(Operation("sort_order", "routine", _infer_sort_order, _evaluate_sort_order, ("axis",)))
# The positions in the operand of the `count` greatest elements, greatest first; equal elements keep their order. With
# `signed_zeros` minus zero is less than zero.
define(
    Operation(
        "top_order",
        "routine",
        _infer_top_order,
        _evaluate_top_order,
        ("axis", "count", "signed_zeros"),
        defaults={"signed_zeros": False},
    )
)
# The inverse of taking elements in an order along an axis: element i goes to position order[…,i,…]. The order has each
# position once.
define(Operation("unsort", "routine", _infer_unsort, _evaluate_unsort, ("axis",)))
# The position in a sorted row at which to insert a value: before equal elements, or with `right` after them.
define(Operation("search_sorted", "routine", _infer_search_sorted, _evaluate_search_sorted, ("right",)))
