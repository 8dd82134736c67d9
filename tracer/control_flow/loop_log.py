"""Effects of while loops on the host: the loop carries a log of the values that they take in each iteration.

The log is read when the program has run. Its capacity is fixed, because only the device knows the number of iterations;
of those beyond the capacity only their number is kept. Of a check the log has the values of its first failure.
"""
from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from lavax.ir import TensorType, bool_, int32
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.checks import Check, earlier_failure
from lavax.tracer.tracing.convert import constant
from lavax.tracer.tracing.effects import Effect, act_in_order, emit, emit_together, parted
from lavax.tracer.values.value import Value

MAX_LOOP_ITERATIONS = 1024
MAX_LOG_BYTES = 1 << 22  # of all arrays together; one iteration is always kept


def capacity_for(types: Sequence[TensorType]) -> int:
    """The number of iterations whose values, of these types, are kept."""
    return max(1, min(MAX_LOOP_ITERATIONS, MAX_LOG_BYTES // max(1, sum(type.nbytes for type in types))))


def empty_log(effects: Sequence[Effect], types: Sequence[TensorType]) -> list[Value]:
    """An empty log: one array per value, with an axis of iterations in front; of checks those of one that holds."""
    is_checked = _are_of_checks(effects)
    rows = _rows(effects, types)
    return [
        constant(type.dtype.kind == "bool", type) if checked else constant(0, type.with_shape((rows, *type.shape)))
        for type, checked in zip(types, is_checked, strict=True)
    ]


def _rows(effects: Sequence[Effect], types: Sequence[TensorType]) -> int:
    return capacity_for([type for type, checked in zip(types, _are_of_checks(effects), strict=True) if not checked])


def _are_of_checks(effects: Sequence[Effect]) -> list[bool]:
    """For each value of the effects whether a check takes it."""
    return [isinstance(effect.act, Check) for effect in effects for _ in range(effect.count)]


def entered(effects: Sequence[Effect], log: Sequence[Value], iteration: Value, values: Sequence[Value]) -> list[Value]:
    """The log with the values of an iteration, unless it is full."""
    found: list[Value] = []
    for (effect, kept), (_, taken) in zip(parted(effects, log), parted(effects, values), strict=True):
        if isinstance(effect.act, Check):
            found += earlier_failure(kept, taken)
        else:
            found += [_with_row(old, iteration, value) for old, value in zip(kept, taken, strict=True)]
    return found


def _with_row(kept: Value, row: Value, value: Value) -> Value:
    """The array with `value` in one row: an elementwise choice, which is written in place."""
    rows = kept.shape[0]
    vector = TensorType((rows,), int32)
    is_row = bind("equal", bind("iota", type=vector, axis=0), bind("broadcast", row, type=vector, axes=()))
    chosen = bind("broadcast", is_row, type=kept.type.with_dtype(bool_), axes=(0,))
    fixed = bind("stop_gradient", value) if value.type.dtype.is_inexact else value
    repeated = bind("broadcast", fixed, type=kept.type, axes=tuple(range(1, len(kept.shape))))
    return bind("where", chosen, repeated, kept)


def emit_log(effects: Sequence[Effect], iterations: Value, log: Sequence[Value]) -> None:
    """Emits the effects of all logged iterations; warns (RuntimeWarning) if there were more than the log holds."""
    others: list[Effect] = []
    kept: list[Value] = []
    for effect, taken in parted(effects, log):
        if isinstance(effect.act, Check):
            emit(effect.act, taken)
        else:
            others.append(effect)
            kept += taken
    rows = kept[0].shape[0] if kept else MAX_LOOP_ITERATIONS

    def act(arrays: Sequence[np.ndarray]) -> None:
        count = int(arrays[0])
        for iteration in range(min(count, rows)):
            act_in_order(others, [array[iteration] for array in arrays[1:]])
        if count > rows:
            done = f"its debug.print and debug.callback are done for the first {rows} of them"
            warnings.warn(f"a while_loop ran {count} iterations: {done}", RuntimeWarning, stacklevel=2)

    emit_together(others, act, [iterations, *kept])
