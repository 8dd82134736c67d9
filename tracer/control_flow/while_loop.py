"""Loops that run while a condition holds: while_loop. Names and arguments are JAX's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.base.errors import ControlFlowTypeError
from lavax.ir import TensorType, bool_
from lavax.ir.location import user_error
from lavax.tracer.control_flow.bodies import INDEX, flattened, output_types, trace_body
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.carried import trace_loop_body
from lavax.tracer.control_flow.loop_log import emit_log, empty_log, entered
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.tracing.automatic_checks import checks_of, unchecked
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant
from lavax.tracer.tracing.effects import Effect, take_effects
from lavax.tracer.tracing.tracing import Traced, without_effects


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Repeats `value = body_fun(value)` while `cond_fun(value)` is true; gives the last value.

    `body_fun` returns a pytree of the structure, shapes and dtypes that it takes. The number of iterations may depend
    on data. Forward mode only: reverse mode needs a scan. Raises ControlFlowTypeError if the types differ or the
    condition is not a scalar truth value.
    """
    return named_while_loop("while_loop", cond_fun, body_fun, init_val)


def named_while_loop(name: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`while_loop` for a function that messages call `name`."""
    values, (structure,) = flattened([init_val])
    body, values = trace_loop_body(name, body_fun, [structure], values, [])
    condition = trace_body(cond_fun, [structure], [value.abstract for value in values], f"{name} condition")
    asked = output_types(without_effects(condition))
    if asked != [TensorType((), bool_)]:
        found = ", ".join(str(type) for type in asked)
        raise user_error(
            ControlFlowTypeError, f"{name}: cond_fun must give a scalar bool, got {found or 'nothing'}"
        )
    if condition.effects or body.effects:
        return _logged_loop(cond_fun, body_fun, unflatten(structure, values), condition, body)
    graphs, captured = with_common_captures([condition, body], len(values))
    types, weak = [value.type for value in values], [value.weak for value in values]
    results = apply_control_flow("while", [*values, *captured], types, weak, condition=graphs[0], body=graphs[1])
    return unflatten(structure, results)


def _logged_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, condition: Traced, body: Traced
) -> Any:
    """The loop, with a log of the values that its effects need on the host.

    Each iteration logs the effects of the condition, then those of the body. The condition that ends the loop is
    evaluated once more behind it, for its effects.
    """
    effects: list[Effect] = []
    checked_cond, checked_body = checks_of(cond_fun), checks_of(body_fun)

    def running(state: Any) -> Any:
        found = cond_fun(state[0])
        take_effects()
        return found

    def iteration(state: Any) -> Any:
        value, (count, log) = state
        checked_cond(value)
        after = checked_body(value)
        effects[:], shown = take_effects()
        return after, (bind("add", count, constant(1, INDEX)), entered(effects, log, count, shown))

    logged = (*condition.effects, *body.effects)
    types = [*output_types(condition)[1:], *output_types(body)[body.structure.leaf_count :]]
    start = (init_val, (constant(0, INDEX), empty_log(logged, types)))
    with unchecked():  # the log's own operations
        value, (count, log) = while_loop(running, iteration, start)
        emit_log(effects, count, log)
        if condition.effects:
            checked_cond(value)
    return value
