"""Effects of while loops on the host: the loop carries a log of the values that they take in each iteration.

The log is read when the program has run. Its capacity is fixed, because only the device knows the number of iterations;
of those beyond the capacity only their number is kept.
"""
from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from lavax.ir import TensorType, bool_, int32
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant
from lavax.tracer.tracing.effects import Effect, act_in_order, emit_together
from lavax.tracer.values.value import Value

MAX_LOOP_ITERATIONS = 1024
MAX_LOG_BYTES = 1 << 22  # of all arrays together; one iteration is always kept


def capacity_for(types: Sequence[TensorType]) -> int:
    """The number of iterations whose values, of these types, are kept."""
    return max(1, min(MAX_LOOP_ITERATIONS, MAX_LOG_BYTES // max(1, sum(type.nbytes for type in types))))


def empty_log(types: Sequence[TensorType]) -> list[Value]:
    """An empty log: one array per value, with an axis of iterations in front."""
    rows = capacity_for(types)
    return [constant(0, type.with_shape((rows, *type.shape))) for type in types]


def entered(log: Sequence[Value], iteration: Value, values: Sequence[Value]) -> list[Value]:
    """The log with the values of an iteration, unless it is full."""
    return [_with_row(kept, iteration, value) for kept, value in zip(log, values, strict=True)]


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
    rows = log[0].shape[0] if log else MAX_LOOP_ITERATIONS

    def act(arrays: Sequence[np.ndarray]) -> None:
        count = int(arrays[0])
        for iteration in range(min(count, rows)):
            act_in_order(effects, [array[iteration] for array in arrays[1:]])
        if count > rows:
            done = f"its debug.print and debug.callback are done for the first {rows} of them"
            warnings.warn(f"a while_loop ran {count} iterations: {done}", RuntimeWarning, stacklevel=2)

    emit_together(effects, act, [iterations, *log])
