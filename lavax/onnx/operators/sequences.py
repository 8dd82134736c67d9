"""Sequences of tensors and values that may be absent. Both exist while tracing only: as tuples, and as None."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.onnx.operators.operator import Call, Operator


def _at(call: Call, sequence: Any, position: Any) -> Any:
    return sequence[call.integers(position, "position")[0]]


def _insert(call: Call, sequence: Any, tensor: Any, position: Any = None) -> Any:
    place = len(sequence) if position is None else call.integers(position, "position")[0]
    place = place + len(sequence) if place < 0 else place
    return ((*sequence[:place], tensor, *sequence[place:]),)


def _erase(call: Call, sequence: Any, position: Any = None) -> Any:
    place = (-1 if position is None else call.integers(position, "position")[0]) % len(sequence)
    return ((*sequence[:place], *sequence[place + 1 :]),)


def _concat(call: Call, sequence: Any) -> Any:
    if call.new_axis:
        return call.np.stack(sequence, axis=call.axis)
    return call.np.concatenate(sequence, axis=call.axis)


def _split(call: Call, x: Any, split: Any = None) -> Any:
    axis = call.axis % x.ndim
    if split is None:
        sizes = [1] * x.shape[axis]
    elif split.ndim:
        sizes = list(call.integers(split, "split"))
    else:
        each = call.integers(split, "split")[0]
        sizes = [min(each, x.shape[axis] - start) for start in range(0, x.shape[axis], each)]
    parts, start = [], 0
    for size in sizes:
        cut = x[tuple(slice(start, start + size) if k == axis else slice(None) for k in range(x.ndim))]
        is_squeezed = split is None and not call.keepdims
        parts.append(call.np.squeeze(cut, axis=axis) if is_squeezed else cut)
        start += size
    return (tuple(parts),)


def _optional(call: Call, value: Any = None) -> Any:
    return (value,) if isinstance(value, tuple) else value


def _element(call: Call, value: Any) -> Any:
    if value is None:
        raise call.error("the value is absent")
    return (value,) if isinstance(value, tuple) else value


def _has_element(call: Call, value: Any = None) -> Any:
    return np.array(value is not None)


def _identity_of_sequence(call: Call, *values: Any) -> Any:
    return (tuple(values),)


OPERATORS = (
    Operator("ConcatFromSequence", _concat, {"axis": 0, "new_axis": 0}, folds=True),
    Operator("Optional", _optional, {"type": None}, folds=True),
    Operator("OptionalGetElement", _element, folds=True),
    Operator("OptionalHasElement", _has_element, folds=True, of_shape=True),
    Operator("SequenceAt", _at, known=(1,), folds=True),
    Operator("SequenceConstruct", _identity_of_sequence, folds=True),
    Operator("SequenceEmpty", _identity_of_sequence, {"dtype": None}, folds=True),
    Operator("SequenceErase", _erase, known=(1,), folds=True),
    Operator("SequenceInsert", _insert, known=(2,), folds=True),
    Operator("SequenceLength", lambda call, sequence: np.array(len(sequence), np.int64), folds=True, of_shape=True),
    Operator("SplitToSequence", _split, {"axis": 0, "keepdims": 1}, known=(1,), folds=True),
)
