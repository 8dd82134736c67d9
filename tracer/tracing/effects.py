"""What a traced function is to do on the host besides giving values: recorded in order, done when they are known."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.values.value import Value

Action = Callable[[Sequence[np.ndarray]], None]


@dataclass(frozen=True, eq=False)
class Effect:
    """An action on the numbers of some values, which are further results of the graph that is being traced."""

    act: Action
    count: int  # of its values


@dataclass(frozen=True, eq=False)
class Recorded:
    """An effect while its trace goes on."""

    act: Action
    values: tuple[Value, ...]


def emit(act: Action, values: Sequence[Value]) -> None:
    """Has `act` called with the numbers of `values`: now, or when the program that is being traced has run."""
    trace = active_trace()
    if trace is None:
        act([np.asarray(value) for value in values])
    else:
        trace.effects.append(Recorded(act, tuple(values)))


def take_effects() -> tuple[tuple[Effect, ...], list[Value]]:
    """What the innermost trace has recorded, for whoever will have it done, and the values that it needs."""
    trace = active_trace()
    if trace is None:
        return (), []
    taken: list[Recorded] = list(trace.effects)
    trace.effects.clear()
    effects = tuple(Effect(each.act, len(each.values)) for each in taken)
    return effects, [value for each in taken for value in each.values]


def emit_again(effects: Sequence[Effect], values: Sequence[Value]) -> None:
    """The effects outside a transformed function, with `values` for theirs."""
    position = 0
    for effect in effects:
        emit(effect.act, values[position : position + effect.count])
        position += effect.count


def emit_for_each(effects: Sequence[Effect], values: Sequence[Value], size: int, step: int = 1) -> None:
    """The effects for each element along the first axis, which each value has before its own: from the first, or for
    a `step` of -1 from the last."""

    def act(arrays: Sequence[np.ndarray]) -> None:
        for element in range(size)[::step]:
            act_in_order(effects, [array[element] for array in arrays])

    if effects:
        emit(act, values)


def act_in_order(effects: Sequence[Effect], arrays: Sequence[np.ndarray]) -> None:
    """Does the effects, with these numbers for their values."""
    position = 0
    for effect in effects:
        effect.act(arrays[position : position + effect.count])
        position += effect.count
