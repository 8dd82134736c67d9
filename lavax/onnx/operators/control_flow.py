"""If, Loop and Scan: branches and bodies are graphs, which read the names around them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, on_device, subgraph
from lavax.onnx.reading.graph import Graph, Node
from lavax.tracer.control_flow.branches import cond
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.tracing.abstract_evaluation import eval_shape
from lavax.tracer.values.value import Value

MOST_STEPS = 10_000  # of a loop that is written out


def _if(call: Call, condition: Any) -> Any:
    then, otherwise = subgraph(call, "then_branch"), subgraph(call, "else_branch")
    if isinstance(condition, np.ndarray):
        return tuple(call.branch(then if condition.any() else otherwise))
    return cond(
        condition.reshape(()),
        lambda: tuple(map(on_device, call.branch(then))),
        lambda: tuple(map(on_device, call.branch(otherwise))),
    )


def constant_condition(body: Graph) -> bool:
    """Whether a loop's body always says to go on: it gives the condition that it got, or a constant that is true."""
    made = {name: node for node in body.nodes for name in node.outputs}
    name = body.outputs[0].name
    while name in made and made[name].operator in ("Identity", "Cast"):
        name = made[name].inputs[0]
    if len(body.inputs) > 1 and name == body.inputs[1].name:
        return True
    value = body.initializers.get(name)
    if name in made and made[name].operator == "Constant":
        value = made[name].attributes.get("value")
    return value is not None and bool(np.all(value))


def collected_outputs(node: Node) -> int:
    """How many outputs of a Loop gather a value of each step."""
    body: Graph = node.attributes["body"]
    return len(body.outputs) - 1 - max(len(node.inputs) - 2, 0)


def _loop(call: Call, count: Any = None, condition: Any = None, *carried: Any) -> Any:
    body = subgraph(call, "body")
    carried_count = len(body.outputs) - 1 - collected_outputs(call.node)
    carried = (*carried, *[None] * (carried_count - len(carried)))
    goes_on = constant_condition(body)
    if isinstance(condition, np.ndarray) and not condition.any():
        count = np.array(0, np.int64)
    is_counted = goes_on and isinstance(count, np.ndarray) and not isinstance(condition, Value)
    if _is_written_out(call, body, carried):
        return _written_out(call, body, count, carried)
    state = tuple(map(on_device, carried))
    if is_counted and (steps := int(count.reshape(()))) and _keeps_types(call, body, state):
        return _counted(call, body, steps, state)
    if is_counted:
        return _written_out(call, body, count, carried)
    if len(body.outputs) - 1 > len(carried):
        raise call.error("the number of steps depends on data, and with it the shape of what the loop collects")
    return _while(call, body, count, condition, state)


def _is_written_out(call: Call, body: Graph, carried: Sequence[Any]) -> bool:
    """Whether each step is traced by itself: because it carries sequences, or numbers that must be known."""
    known = call.needs(body)
    if any(isinstance(value, tuple) or value is None for value in carried):
        return True
    return any(given.name in known for given in (body.inputs[0], *body.inputs[2:]))


def _keeps_types(call: Call, body: Graph, state: tuple[Any, ...]) -> bool:
    """Whether a step gives values of the types that it takes."""

    def step(*values: Any) -> Any:
        made = call.branch(body, lnp.asarray(0), np.array(True), *values)
        return tuple(map(on_device, made[1 : 1 + len(values)]))

    after = eval_shape(step, *state)
    return all(
        tuple(new.shape) == tuple(old.shape) and new.dtype == old.dtype for new, old in zip(after, state, strict=True)
    )


def _counted(call: Call, body: Graph, steps: int, state: tuple[Any, ...]) -> Any:
    def step(values: Any, number: Any) -> Any:
        made = list(map(on_device, call.branch(body, number, np.array(True), *values)))
        return tuple(made[1 : 1 + len(values)]), tuple(made[1 + len(values) :])

    end, rows = scan(step, state, lnp.arange(steps))
    return (*end, *rows)


def _written_out(call: Call, body: Graph, count: Any, carried: Sequence[Any]) -> Any:
    most = None if count is None else int(call.known(count, "the number of steps").reshape(()))
    state, number = list(carried), 0
    rows: list[list[Any]] = [[] for _ in range(collected_outputs(call.node))]
    goes_on = True
    while goes_on and (most is None or number < most):
        if number == MOST_STEPS:
            raise call.error(f"the loop takes more than {MOST_STEPS} steps, and each would be traced by itself")
        made = call.branch(body, np.array(number, np.int64), np.array(True), *state)
        goes_on = bool(call.known(made[0], "the condition to go on").any())
        state = list(made[1 : 1 + len(state)])
        for row, value in zip(rows, made[1 + len(state) :], strict=True):
            row.append(value)
        number += 1
    return (*state, *(_stacked(call, row, body.outputs[1 + len(state) + k]) for k, row in enumerate(rows)))


def _stacked(call: Call, row: list[Any], described: Any) -> Any:
    if not row:
        inner = tuple(extent if isinstance(extent, int) else 0 for extent in described.shape or ())
        return np.zeros((0, *inner), described.dtype)
    if all(isinstance(value, np.ndarray) for value in row):
        return np.stack(row)
    return lnp.stack(list(map(on_device, row)))


def _while(call: Call, body: Graph, count: Any, condition: Any, state: tuple[Any, ...]) -> Any:
    first = lnp.asarray(True) if condition is None else on_device(condition).reshape(())
    most = None if count is None else on_device(count).reshape(())

    def runs(value: Any) -> Any:
        number, goes_on, _ = value
        return goes_on if most is None else goes_on & (number < most)

    def step(value: Any) -> Any:
        number, goes_on, values = value
        made = list(map(on_device, call.branch(body, number, goes_on, *values)))
        return number + 1, made[0].reshape(()), tuple(made[1:])

    start = lnp.asarray(0) if most is None else lnp.zeros((), most.dtype)
    end: tuple[Any, ...] = while_loop(runs, step, (start, first, state))[2]
    return end


def _scan(call: Call, *inputs: Any) -> Any:
    body, count = subgraph(call, "body"), call.num_scan_inputs
    state, given = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    axes = call.scan_input_axes or (0,) * count
    turned = call.scan_input_directions or (0,) * count
    rows = []
    for value, axis, is_reversed in zip(given, axes, turned, strict=True):
        moved = lnp.moveaxis(on_device(value), axis, 0)
        rows.append(lnp.flip(moved, 0) if is_reversed else moved)

    def step(values: Any, row: Any) -> Any:
        made = list(map(on_device, call.branch(body, *values, *row)))
        return tuple(made[: len(values)]), tuple(made[len(values) :])

    end, found = scan(step, tuple(map(on_device, state)), tuple(rows))
    out_axes = call.scan_output_axes or (0,) * len(found)
    out_turned = call.scan_output_directions or (0,) * len(found)
    made = []
    for value, axis, is_reversed in zip(found, out_axes, out_turned, strict=True):
        moved = lnp.flip(value, 0) if is_reversed else value
        made.append(lnp.moveaxis(moved, 0, axis))
    return (*end, *made)


def _sequence_map(call: Call, *inputs: Any) -> Any:
    body = subgraph(call, "body")
    rows = []
    for number in range(len(inputs[0])):
        rows.append(call.branch(body, *(value[number] if isinstance(value, tuple) else value for value in inputs)))
    return tuple(tuple(row[k] for row in rows) for k in range(len(body.outputs)))


_SCAN = dict.fromkeys(("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions"))

OPERATORS = (
    Operator("If", _if, {"then_branch": REQUIRED, "else_branch": REQUIRED}, folds=True, keeps=(0,)),
    Operator(
        "Loop", _loop, {"body": REQUIRED}, folds=True, keeps=None,
        known=lambda node: (0, 1) if collected_outputs(node) else (),
    ),
    Operator("Scan", _scan, {"body": REQUIRED, "num_scan_inputs": REQUIRED, **_SCAN}, since=9),
    Operator("SequenceMap", _sequence_map, {"body": REQUIRED}, folds=True, keeps=None),
)  # fmt: skip
