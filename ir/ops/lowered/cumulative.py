"""Parts of cumulative operations on lines cut into chunks.

With `reverse` chunks are counted from the end of a line, as elements are. `fold` names the cumulative operation.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, TypeRule, define
from lavax.ir.ops.cumulative import CUMULATIVE, line_rule
from lavax.ir.types import TensorType


def _chunk_rule(name: str, is_total: bool) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        fold, axis, chunk = attrs["fold"], attrs["axis"], attrs["chunk"]
        if fold not in CUMULATIVE:
            raise ShapeError(f"{name}: {fold!r} is none of {', '.join(CUMULATIVE)}")
        operand = line_rule(name, CUMULATIVE[fold][0])(operands[:1], attrs, None)
        if chunk < 1:
            raise ShapeError(f"{name}: a chunk has at least one element, got {chunk}")
        parts = (*operand.shape[:axis], -(-operand.shape[axis] // chunk), *operand.shape[axis + 1 :])
        if not is_total and operands[1] != operand.with_shape(parts):
            raise ShapeError(f"{name}: starts {operands[1]} are not one for each chunk of {chunk} of {operand}")
        return operand.with_shape(parts) if is_total else operand

    return infer


def _evaluate_chunk_totals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    axis = attrs["axis"]
    if type.size == 0:
        return np.zeros(type.shape, dtype)
    x = np.flip(arrays[0], axis) if attrs["reverse"] else arrays[0]
    firsts = np.arange(0, x.shape[axis], attrs["chunk"])
    return np.asarray(CUMULATIVE[attrs["fold"]][1].function.reduceat(x, firsts, axis, dtype))


def _evaluate_cumulative_chunks(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    axis, chunk, accumulate = attrs["axis"], attrs["chunk"], CUMULATIVE[attrs["fold"]][1].function.accumulate
    x, starts = (np.moveaxis(array, axis, 0) for array in arrays)
    x = np.flip(x, 0) if attrs["reverse"] else x
    result = np.empty(x.shape, dtype)
    for number, start in enumerate(starts):
        part = slice(number * chunk, (number + 1) * chunk)
        result[part] = accumulate(np.concatenate([start[None], x[part]]), axis=0, dtype=dtype)[1:]
    return np.moveaxis(np.flip(result, 0) if attrs["reverse"] else result, 0, axis)


# chunk_totals(x): the fold of each chunk. cumulative_chunks(x, starts): the partial folds of each chunk from its start.
_CHUNK_ATTRIBUTES = ("fold", "axis", "chunk", "reverse")
for _name, _is_total, _evaluate in (
    ("chunk_totals", True, _evaluate_chunk_totals),
    ("cumulative_chunks", False, _evaluate_cumulative_chunks),
):
    define(Operation(_name, "lowered", _chunk_rule(_name, _is_total), _evaluate, _CHUNK_ATTRIBUTES))
