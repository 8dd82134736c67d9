"""What a traced function is to do on the host besides giving values: recorded in order, done when they are known."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lavax.tracer.trace import active_trace
from lavax.tracer.value import Value

Action = Callable[[Sequence[np.ndarray]], None]


@dataclass(frozen=True, eq=False)
class Effect:
    """An action on the numbers of some values."""

    act: Action
    values: tuple[Value, ...]


def emit(act: Action, values: Sequence[Value]) -> None:
    """Has `act` called with the numbers of `values`: now, or when the program that is being traced has run."""
    trace = active_trace()
    if trace is None:
        act([np.asarray(value) for value in values])
    else:
        trace.effects.append(Effect(act, tuple(values)))


def take_effects() -> list[Effect]:
    """What the innermost trace has recorded, for whoever will have it done."""
    trace = active_trace()
    if trace is None:
        return []
    taken = list(trace.effects)
    trace.effects.clear()
    return taken


def values_of(effects: Sequence[Effect]) -> list[Value]:
    return [value for effect in effects for value in effect.values]


def emit_again(effects: Sequence[Effect], values: Sequence[Value], size: int | None = None, step: int = 1) -> None:
    """The effects outside a transformed function, with `values` for theirs.

    With `size`, each value has one more axis in front, and the effects are done for each element along it in turn
    (from the last, for a `step` of -1).
    """
    if size is None:
        position = 0
        for effect in effects:
            emit(effect.act, values[position : position + len(effect.values)])
            position += len(effect.values)
    elif effects:
        counts = [len(effect.values) for effect in effects]
        emit(_for_each([effect.act for effect in effects], counts, range(size)[::step]), values)


def _for_each(actions: Sequence[Action], counts: Sequence[int], order: Sequence[int]) -> Action:
    def act(arrays: Sequence[np.ndarray]) -> None:
        for element in order:
            position = 0
            for action, count in zip(actions, counts, strict=True):
                action([array[element] for array in arrays[position : position + count]])
                position += count

    return act
