"""Effects on the host, such as prints, of traced functions: recorded in order, done when their values are known.

A check (checks.py) is an effect of which only the first failure counts, so that loops need not keep all of them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.tracing.checks import Check, first_failure, only_if
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.values.value import Value

Action = Callable[[Sequence[np.ndarray]], None]


@dataclass(frozen=True, eq=False)
class Effect:
    """An action on the numbers of some values, which are further outputs of the traced graph.

    Without an action, what the program does to compute the values is the effect. `ordered` effects take place in the
    order of the program.
    """

    act: Action | None
    count: int  # of values
    ordered: bool


@dataclass(frozen=True, eq=False)
class RecordedEffect:
    """An effect while its trace is active."""

    act: Action | None
    values: tuple[Value, ...]
    ordered: bool


def emit(act: Action | None, values: Sequence[Value], ordered: bool = False) -> None:
    """Calls `act` with the numbers of `values`: now, or when the traced program has run."""
    trace = active_trace()
    if trace is not None:
        trace.effects.append(RecordedEffect(act, tuple(values), ordered))
    elif act is not None:
        act([np.asarray(value) for value in values])


def emit_together(effects: Sequence[Effect], act: Action, values: Sequence[Value]) -> None:
    """Emits `act`, which performs all these effects."""
    needed = any(effect.act is not None for effect in effects)
    if effects:
        emit(act if needed else None, values, any(effect.ordered for effect in effects))


def last_ordered() -> list[Value]:
    """A value that is known when the last ordered effect before the current point has taken place, if there is one."""
    trace = active_trace()
    while trace is not None:
        for effect in reversed(trace.effects):
            if effect.ordered:
                return [effect.values[-1]]
        trace = trace.parent
    return []


def take_effects() -> tuple[tuple[Effect, ...], list[Value]]:
    """Removes the effects from the innermost trace, and returns them with the values that they need."""
    trace = active_trace()
    if trace is None:
        return (), []
    taken: list[RecordedEffect] = list(trace.effects)
    trace.effects.clear()
    effects = tuple(Effect(each.act, len(each.values), each.ordered) for each in taken)
    return effects, [value for each in taken for value in each.values]


def emit_again(effects: Sequence[Effect], values: Sequence[Value]) -> None:
    """Emits the effects of a transformed function outside it, with `values` as their values."""
    position = 0
    for effect in effects:
        emit(effect.act, values[position : position + effect.count], effect.ordered)
        position += effect.count


def parted(effects: Sequence[Effect], values: Sequence[Value]) -> Iterator[tuple[Effect, Sequence[Value]]]:
    """Each effect, with those of the values that it takes."""
    position = 0
    for effect in effects:
        yield effect, values[position : position + effect.count]
        position += effect.count


def emit_for_each(effects: Sequence[Effect], values: Sequence[Value], size: int, step: int = 1) -> None:
    """Emits the effects once per element along the first axis of the values, from the first element to the last.

    With a `step` of -1 the order is from the last to the first. Of checks the first failure is one.
    """
    others: list[Effect] = []
    remaining: list[Value] = []
    for effect, taken in parted(effects, values):
        if not isinstance(effect.act, Check):
            others.append(effect)
            remaining += taken
        elif size:
            emit(effect.act, first_failure(taken, step))
    effects, values = others, remaining

    def act(arrays: Sequence[np.ndarray]) -> None:
        for element in range(size)[::step]:
            act_in_order(effects, [array[element] for array in arrays])

    emit_together(effects, act, values)


def emit_if(chosen: Value, effects: Sequence[Effect], values: Sequence[Value]) -> None:
    """Emits the checks among the effects, which fail only where `chosen` is true."""
    for effect, taken in parted(effects, values):
        if isinstance(effect.act, Check):
            emit(effect.act, only_if(chosen, taken))


def act_in_order(effects: Sequence[Effect], arrays: Sequence[np.ndarray]) -> None:
    """Performs the effects, with these numbers as their values."""
    position = 0
    for effect in effects:
        if effect.act is not None and not isinstance(effect.act, Check):
            effect.act(arrays[position : position + effect.count])
        position += effect.count
