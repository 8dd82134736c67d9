"""Operations that put elements in order. Numbers rise, false comes before true, NaN comes last."""
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


def _infer_unsort(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, order = operands
    if order != _infer_sort_order((x,), attrs, None):
        raise ShapeError(f"unsort: the order {order} must be {x.with_dtype(int32)}")
    return x


def _check_run(name: str, keys: TensorType, run: int) -> None:
    if not keys.rank:
        raise ShapeError(f"{name}: the keys must have an axis, got {keys}")
    if run < 1:
        raise ShapeError(f"{name}: a run has at least one element, got {run}")


def _infer_sort_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (keys,) = operands
    _check_run("sort_runs", keys, attrs["run"])
    return keys.with_dtype(int32)


def _infer_merge_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    keys, order = operands
    _check_run("merge_runs", keys, attrs["run"])
    if order != keys.with_dtype(int32):
        raise ShapeError(f"merge_runs: the order {order} must be {keys.with_dtype(int32)}")
    return order


def _infer_search_sorted(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    rows, values = operands
    if rows.dtype != values.dtype:
        raise DtypeError(f"search_sorted: operands must have one dtype, got {rows} and {values}")
    if not rows.rank == values.rank >= 1 or rows.shape[:-1] != values.shape[:-1]:
        raise ShapeError(f"search_sorted: {rows} and {values} must agree in all axes but the last")
    return values.with_dtype(int32)


def _infer_count_digits(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (values,) = operands
    if values.dtype.kind != "uint" or not values.rank:
        raise DtypeError(f"count_digits: the values must be rows of unsigned integers, got {values}")
    if not (0 <= attrs["shift"] < attrs["shift"] + attrs["bits"] <= 64 and attrs["tile"] > 0):
        raise ShapeError(f"count_digits: no digits of {values}: {attrs}")
    *batch, length = values.shape
    return TensorType((*batch, 1 << attrs["bits"], -(-length // attrs["tile"])), int32)


def _infer_move_by_digit(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    values, starts = operands
    counts = _infer_count_digits((values,), attrs, None)
    if starts != counts:
        raise ShapeError(f"move_by_digit: the starts {starts} must be {counts}")
    return values


def _evaluate_sort(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.sort(arrays[0], axis=attrs["axis"], kind="stable"))


def _evaluate_sort_order(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return np.argsort(arrays[0], axis=attrs["axis"], kind="stable").astype(dtype)


def _evaluate_unsort(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    x, order = arrays
    result = np.zeros(type.shape, dtype)
    np.put_along_axis(result, order.astype(np.int64), x, attrs["axis"])
    return result


def _evaluate_sort_runs(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    (keys,) = arrays
    result = np.empty(keys.shape, dtype)
    for start in range(0, keys.shape[-1], attrs["run"]):
        part = slice(start, start + attrs["run"])
        result[..., part] = start + np.argsort(keys[..., part], axis=-1, kind="stable")
    return result


def _evaluate_merge_runs(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    keys, order = arrays
    result = np.empty(order.shape, dtype)
    for start in range(0, keys.shape[-1], 2 * attrs["run"]):
        part = order[..., start : start + 2 * attrs["run"]]
        places = np.argsort(np.take_along_axis(keys, part, -1), axis=-1, kind="stable")
        result[..., start : start + 2 * attrs["run"]] = np.take_along_axis(part, places, -1)
    return result


def _digits(values: np.ndarray, attrs: Attributes) -> np.ndarray:
    shifted = values.astype(np.uint64) >> np.uint64(attrs["shift"])
    return (shifted & np.uint64((1 << attrs["bits"]) - 1)).astype(np.int64)


def _evaluate_count_digits(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    digits, result = _digits(arrays[0], attrs), np.zeros(type.shape, dtype)
    for at in np.ndindex(digits.shape):
        result[(*at[:-1], digits[at], at[-1] // attrs["tile"])] += 1
    return result


def _evaluate_move_by_digit(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    values, starts = arrays
    digits, free, result = _digits(values, attrs), starts.copy(), np.zeros(type.shape, dtype)
    for at in np.ndindex(digits.shape):
        counter = (*at[:-1], digits[at], at[-1] // attrs["tile"])
        result[(*at[:-1], free[counter])] = values[at]
        free[counter] += 1
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
# Where the elements of the sorted axis stand in the operand; equal elements keep their order.
define(Operation("sort_order", "routine", _infer_sort_order, _evaluate_sort_order, ("axis",)))
# The inverse of taking elements in an order along an axis: order[…,i,…] says where the element i goes. The order has
# each position once.
define(Operation("unsort", "routine", _infer_unsort, _evaluate_unsort, ("axis",)))
# Of keys[…,n], for each row: the positions of its elements with every `run` of neighbours in order by itself.
define(Operation("sort_runs", "routine", _infer_sort_runs, _evaluate_sort_runs, ("run",)))
# Of keys[…,n] and positions in which every `run` is in order: those in which every 2·run are.
define(Operation("merge_runs", "routine", _infer_merge_runs, _evaluate_merge_runs, ("run",)))
# Where in a sorted row a value would go: before its equals, or with `right` behind them.
define(Operation("search_sorted", "routine", _infer_search_sorted, _evaluate_search_sorted, ("right",)))
# Of values[…,n]: how many of each `tile` of neighbours have each digit, the number of `bits` bits from bit `shift` on.
_DIGITS = ("shift", "bits", "tile")
define(Operation("count_digits", "routine", _infer_count_digits, _evaluate_count_digits, _DIGITS))
# The values moved within their rows: those of a tile that have a digit stand side by side, in their order, from
# starts[…,digit,tile] on.
define(Operation("move_by_digit", "routine", _infer_move_by_digit, _evaluate_move_by_digit, _DIGITS))
