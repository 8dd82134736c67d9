"""What a loop of unknown length does on the host: it keeps the numbers of its first turns in arrays that it carries.

The arrays are read when the program has run. They have a fixed capacity, since only the device knows how often the loop
turns; of what comes later nothing is kept but the number of turns.
"""
from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from lavax.ir import TensorType, bool_, int32
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant
from lavax.tracer.tracing.effects import Effect, act_in_order, emit
from lavax.tracer.values.value import Value

MOST_TURNS = 1024
MOST_BYTES = 1 << 22  # of all arrays together; one turn is always kept

_logger = logging.getLogger("lavax.debug")


def capacity_for(types: Sequence[TensorType]) -> int:
    """How many turns are kept of values of these types."""
    return max(1, min(MOST_TURNS, MOST_BYTES // max(1, sum(type.nbytes for type in types))))


def empty_log(types: Sequence[TensorType]) -> list[Value]:
    """Nothing kept yet: one array a value, with an axis of turns in front."""
    rows = capacity_for(types)
    return [constant(0, type.with_shape((rows, *type.shape))) for type in types]


def entered(log: Sequence[Value], turn: Value, values: Sequence[Value]) -> list[Value]:
    """The log with the values of a turn, unless it is full."""
    return [_with_row(kept, turn, value) for kept, value in zip(log, values, strict=True)]


def _with_row(kept: Value, turn: Value, value: Value) -> Value:
    """A choice by element, which is written in place."""
    rows = kept.shape[0]
    vector = TensorType((rows,), int32)
    is_row = bind("equal", bind("iota", type=vector, axis=0), bind("broadcast", turn, type=vector, axes=()))
    chosen = bind("broadcast", is_row, type=kept.type.with_dtype(bool_), axes=(0,))
    fixed = bind("stop_gradient", value) if value.type.dtype.is_float else value
    repeated = bind("broadcast", fixed, type=kept.type, axes=tuple(range(1, len(kept.shape))))
    return bind("where", chosen, repeated, kept)


def emit_log(effects: Sequence[Effect], turns: Value, log: Sequence[Value]) -> None:
    """Has the effects of a loop's turns done; warns ("lavax.debug") where there were more turns than it keeps."""
    rows = log[0].shape[0] if log else MOST_TURNS

    def act(arrays: Sequence[np.ndarray]) -> None:
        count = int(arrays[0])
        for turn in range(min(count, rows)):
            act_in_order(effects, [array[turn] for array in arrays[1:]])
        if count > rows:
            _logger.warning(
                "a while_loop made %d turns: its debug.print and debug.callback are done for the first %d of them",
                count,
                rows,
            )

    emit(act, [turns, *log])
