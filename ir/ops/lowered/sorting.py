"""Steps of sorting: merge sort of short rows, radix sort of long ones."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, int32, uint32

# The words of minus zero and zero, among words in the order of the floats that they stand for.
ZEROS = ((1 << 31) - 1, 1 << 31)


def _check_run(name: str, keys: TensorType, run: int) -> None:
    if not keys.rank:
        raise ShapeError(f"{name}: the keys must have an axis, got {keys}")
    if run < 1:
        raise ShapeError(f"{name}: a run has at least one element, got {run}")


def _infer_sort_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (keys,) = operands
    _check_run("sort_runs", keys, attrs["run"])
    return keys.with_dtype(int32)


def _infer_select_greatest(
    operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None
) -> TensorType:
    (keys,), count = operands, attrs["count"]
    if keys.dtype.bits > 32 or keys.dtype.kind not in ("float", "int", "uint"):
        raise DtypeError(f"select_greatest: the keys must be numbers of at most 32 bits, got {keys}")
    if not keys.rank or not 0 < count <= keys.shape[-1]:
        raise ShapeError(f"select_greatest: no rows of {count} elements or more: {keys}")
    return keys.with_shape((*keys.shape[:-1], count)).with_dtype(int32)


def _infer_merge_runs(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    keys, order = operands
    _check_run("merge_runs", keys, attrs["run"])
    if order != keys.with_dtype(int32):
        raise ShapeError(f"merge_runs: the order {order} must be {keys.with_dtype(int32)}")
    return order


def _infer_count_digits(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (values,) = operands
    if values.dtype.kind != "uint" or not values.rank:
        raise DtypeError(f"count_digits: the values must be rows of unsigned integers, got {values}")
    if not (0 <= attrs["shift"] < attrs["shift"] + attrs["bits"] <= 64 and attrs["tile"] > 0):
        raise ShapeError(f"count_digits: no digits of {values}: {attrs}")
    if attrs["tied"] and values.dtype != uint32:
        raise DtypeError(f"count_digits: only u32 has words of both zeros, got {values}")
    *batch, length = values.shape
    return TensorType((*batch, 1 << attrs["bits"], -(-length // attrs["tile"])), int32)


def _infer_move_by_digit(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    values, starts = operands
    counts = _infer_count_digits((values,), attrs, None)
    if starts != counts:
        raise ShapeError(f"move_by_digit: the starts {starts} must be {counts}")
    return values


def _evaluate_sort_runs(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    (keys,) = arrays
    result = np.empty(keys.shape, dtype)
    for start in range(0, keys.shape[-1], attrs["run"]):
        part = slice(start, start + attrs["run"])
        result[..., part] = start + np.argsort(keys[..., part], axis=-1, kind="stable")
    return result


def _evaluate_select_greatest(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    (keys,) = arrays
    backwards = np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = keys.shape[-1] - 1 - backwards[..., : attrs["count"]]
    return (np.sort(order, axis=-1) if attrs["by_place"] else order).astype(dtype)


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
    counted = values + (values == ZEROS[0]) if attrs["tied"] else values
    shifted = counted.astype(np.uint64) >> np.uint64(attrs["shift"])
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


# sort_runs(keys[…,n]): the positions of each row's elements, every `run` of neighbours sorted by itself.
define(Operation("sort_runs", "lowered", _infer_sort_runs, _evaluate_sort_runs, ("run",)))
# select_greatest(keys[…,n]): the positions of each row's `count` greatest elements, of equal ones the first; greatest
# first, or with `by_place` in the order of their positions.
define(
    Operation("select_greatest", "lowered", _infer_select_greatest, _evaluate_select_greatest, ("count", "by_place"))
)
# merge_runs(keys[…,n], order): given positions in which every `run` is sorted, those in which every 2·run are.
define(Operation("merge_runs", "lowered", _infer_merge_runs, _evaluate_merge_runs, ("run",)))
# count_digits(values[…,n]): how many values of each `tile` of neighbours have each digit; a digit is the `bits` bits
# from bit `shift` on. If `tied`, the digits of the word of minus zero are those of zero's.
_DIGITS = ("shift", "bits", "tile", "tied")
define(Operation("count_digits", "lowered", _infer_count_digits, _evaluate_count_digits, _DIGITS))
# move_by_digit(values, starts): each row's values moved; those of one tile and digit keep their order and are stored
# from starts[…,digit,tile] on.
define(Operation("move_by_digit", "lowered", _infer_move_by_digit, _evaluate_move_by_digit, _DIGITS))
