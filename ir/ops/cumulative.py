"""Operations that fold an axis step by step and keep every partial result."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import NUMBERS, TensorType

_FLOATS = ("float",)


def _rule(name: str, kinds: tuple[str, ...]) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (operand,) = operands
        if not 0 <= attrs["axis"] < operand.rank:
            raise ShapeError(f"{name}: axis {attrs['axis']} is not an axis of {operand}")
        if operand.dtype.kind not in kinds:
            raise DtypeError(f"{name} is not defined for {operand}")
        return operand

    return infer


def _evaluation(function: np.ufunc) -> Evaluation:
    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        axis, reverse = attrs["axis"], attrs["reverse"]
        folded = function.accumulate(np.flip(arrays[0], axis) if reverse else arrays[0], axis=axis, dtype=dtype)
        return np.asarray(np.flip(folded, axis) if reverse else folded)

    return evaluate


# Element i along `axis` is the fold of the elements 0 to i; with `reverse` that of the last one to i.
CUMULATIVE: dict[str, tuple[tuple[str, ...], np.ufunc]] = {
    "cumulative_sum": (NUMBERS, np.add),
    "cumulative_prod": (NUMBERS, np.multiply),
    "cumulative_max": (NUMBERS, np.maximum),
    "cumulative_min": (NUMBERS, np.minimum),
    "cumulative_logsumexp": (_FLOATS, np.logaddexp),
}

def _chunk_rule(name: str, is_total: bool) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        fold, axis, chunk = attrs["fold"], attrs["axis"], attrs["chunk"]
        if fold not in CUMULATIVE:
            raise ShapeError(f"{name}: {fold!r} is none of {', '.join(CUMULATIVE)}")
        operand = _rule(name, CUMULATIVE[fold][0])(operands[:1], attrs, None)
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
    return np.asarray(CUMULATIVE[attrs["fold"]][1].reduceat(x, firsts, axis, dtype))


def _evaluate_cumulative_chunks(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    axis, chunk, accumulate = attrs["axis"], attrs["chunk"], CUMULATIVE[attrs["fold"]][1].accumulate
    x, starts = (np.moveaxis(array, axis, 0) for array in arrays)
    x = np.flip(x, 0) if attrs["reverse"] else x
    result = np.empty(x.shape, dtype)
    for number, start in enumerate(starts):
        part = slice(number * chunk, (number + 1) * chunk)
        result[part] = accumulate(np.concatenate([start[None], x[part]]), axis=0, dtype=dtype)[1:]
    return np.moveaxis(np.flip(result, 0) if attrs["reverse"] else result, 0, axis)


for _name, (_kinds, _function) in CUMULATIVE.items():
    define(
        Operation(
            *(_name, "routine", _rule(_name, _kinds), _evaluation(_function), ("axis", "reverse")),
            defaults={"reverse": False},
        )
    )

# Of a line in chunks, which `reverse` counts from its end, as it then goes along each of them: the fold of each, and
# the partial folds of each, beginning with a start of its own. `fold` is one of the operations above.
_CHUNK_ATTRIBUTES = ("fold", "axis", "chunk", "reverse")
for _name, _is_total, _evaluate in (
    ("chunk_totals", True, _evaluate_chunk_totals),
    ("cumulative_chunks", False, _evaluate_cumulative_chunks),
):
    define(Operation(_name, "routine", _chunk_rule(_name, _is_total), _evaluate, _CHUNK_ATTRIBUTES))
