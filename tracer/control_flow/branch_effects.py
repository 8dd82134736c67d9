"""Effects of branches on the host: each branch returns its own values, and zeros for those of the others."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lavax.ir.graph import graph_of
from lavax.passes.build.builder import zeros
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.checks import Check
from lavax.tracer.tracing.convert import constant
from lavax.tracer.tracing.effects import Effect, act_in_order, emit_if, emit_together
from lavax.tracer.tracing.tracing import Traced
from lavax.tracer.values.value import Value


def with_all_effects(traced: Sequence[Traced]) -> list[Traced]:
    """The branches with equal outputs: the results, then the values that the effects of each branch take, in order."""
    if not any(each.effects for each in traced):
        return list(traced)
    found = []
    for taken in traced:
        count = taken.structure.leaf_count
        outputs = list(taken.graph.outputs[:count])
        for each in traced:
            values = each.graph.outputs[each.structure.leaf_count :]
            outputs += values if each is taken else [zeros(value.type) for value in values]
        weak = (*taken.weak[:count], *[False] * (len(outputs) - count))
        found.append(replace(taken, graph=graph_of(taken.graph.inputs, outputs), weak=weak))
    return found


def emit_branch(effects: Sequence[Sequence[Effect]], index: Value, values: Sequence[Value]) -> None:
    """Emits the effects of the branch `index`; `values` are those of all branches, in order."""
    if not any(effects):
        return
    counts = [sum(effect.count for effect in each) for each in effects]

    def act(arrays: Sequence[np.ndarray]) -> None:
        number = min(max(int(arrays[0]), 0), len(effects) - 1)
        first = 1 + sum(counts[:number])
        act_in_order(effects[number], arrays[first : first + counts[number]])

    first = 0
    for number, (own, count) in enumerate(zip(effects, counts, strict=True)):
        emit_if(_is_chosen(index, number, len(effects)), own, values[first : first + count])
        first += count
    together = [effect for each in effects for effect in each if not isinstance(effect.act, Check)]
    emit_together(together, act, [index, *values])


def _is_chosen(index: Value, number: int, count: int) -> Value:
    """Whether the branch `number` runs: an index outside means the nearest one."""
    compared = {0: "less_equal", count - 1: "greater_equal"}.get(number, "equal")
    return bind(compared, index, constant(number, index.type))
