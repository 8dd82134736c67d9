"""Tracers: the values that stand for a graph's nodes while a function is traced."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.errors import ConcretizationError, TracerLeakError
from lavax.ir import OPERATIONS
from lavax.ir.graph import INPUT, Node, graph_of, input_node, make_node, with_operands
from lavax.ir.location import user_error, user_location
from lavax.ir.types import TupleType
from lavax.passes.build.host_calls import has_effects
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.tracing.trace import Trace, active_trace
from lavax.tracer.values.abstract import abstract
from lavax.tracer.values.array import Array
from lavax.tracer.values.eager import run_operation
from lavax.tracer.values.value import AS_NUMPY, Value


class Tracer(Value):
    """A node of the graph that `trace` builds, as a value."""

    __slots__ = ("__weakref__", "node", "trace")

    def __init__(self, trace: Trace, node: Node, weak: bool = False) -> None:
        self.abstract = abstract(node.type, weak)
        self.trace = trace
        self.node = node

    def to_host(self, wanted: str) -> np.ndarray:
        return concretize(self, wanted).to_host(wanted)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if _is_differentiated(self):
            raise user_error(
                ConcretizationError,
                f"numpy.asarray() of a value that a derivative depends on ({describe(self)}): NumPy would compute with "
                "its numbers, and the derivative would be lost. Use the function of that name in lavax.numpy; where "
                "no derivative is meant to flow, numpy.asarray(lavax.stop_gradient(x))",
            )
        return super().__array__(dtype, copy)

    def __repr__(self) -> str:
        return f"Tracer({self.type}, {self.trace.purpose})"

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"a traced value ({describe(self)}) cannot be pickled: it has no numbers yet")


def describe(tracer: Tracer) -> str:
    """Its type and its origin."""
    node = tracer.node
    if node.op == INPUT:
        return f"{node.type}, the input {node.name}"
    return f"{node.type}, made by {node.op}" + (f" at {node.location}" if node.location else "")


def require_alive(tracer: Tracer) -> None:
    """Raises TracerLeakError if the tracer's trace has ended, or does not enclose the current point."""
    trace = tracer.trace
    if not trace.ended and trace.encloses(active_trace()):
        return
    where = "after that had ended" if trace.ended else "in another thread or in ensure_compile_time_eval"
    location = user_location()
    raise TracerLeakError(
        f"a traced value ({describe(tracer)}) of the {trace.purpose} was used {where}"
        + (f", at {location}" if location else "")
        + ". It stood for a number only while the function was traced. Return it from the function, and pass it in "
        "as an argument where it is needed, instead of keeping it in a list, an attribute or a global."
    )


def node_in(trace: Trace, value: Value) -> Node:
    """The node of `value` in `trace`; a value from outside becomes an input or a constant of the graph."""
    if isinstance(value, Tracer):
        if value.trace is trace:
            return value.node
        require_alive(value)
        return trace.capture(value.node, value)
    if not isinstance(value, Array):
        raise TypeError(f"{value.abstract} is no node")  # random keys raise an error of theirs
    splat = value.splat
    if splat is not None:
        return make_node("constant", (), {"value": splat}, value.type)
    key = identity(value)
    # A twin: the trace keeps these numbers, even if the array is written later.
    return trace.capture(key, value if key in trace.captures else value.twin(value.weak))


def identity(value: Value) -> Any:
    """What two values have in common if they are one: a node, or memory and weakness.

    Raises DonatedArrayError for an array whose memory was donated.
    """
    if isinstance(value, Tracer):
        return value.node
    assert isinstance(value, Array)
    return value.memory or value.buffer, value.weak


def concretize(tracer: Tracer, wanted: str) -> Array:
    """The numbers of a traced value, if all values that it depends on are known.

    Runs operations that have not run before, one at a time. Raises ConcretizationError if the value depends on an
    abstract input, TracerLeakError if the tracer's trace has ended.
    """
    require_alive(tracer)
    try:
        return _evaluate(tracer.trace, tracer.node)
    except _AbstractInputError as error:
        raise _concretization_error(tracer, wanted, error) from None


def python_number(tracer: Tracer) -> Any:
    """The Python number behind a constant, or an input by which no derivative is taken; the tracer itself if none."""
    value: Value | None = tracer
    while isinstance(value, Tracer) and value.weak and not value.trace.differentiated.get(value.node):
        if value.node.op == "constant":
            return value.node.attrs["value"]
        value = value.trace.known.get(value.node)
    return value.splat if isinstance(value, Array) and value.splat is not None else tracer


def _is_differentiated(tracer: Tracer) -> bool:
    """Whether a derivative is being taken by a value from which this one is computed differentiably."""
    require_alive(tracer)
    met: set[Node] = set()
    stack = [(tracer.trace, tracer.node)]
    while stack:
        trace, node = stack.pop()
        is_discrete = not isinstance(node.type, TupleType) and not node.dtype.is_inexact
        if node in met or node.op == "stop_gradient" or is_discrete:
            continue
        met.add(node)
        stack += [(trace, operand) for operand in node.operands]
        taken = trace.differentiated.get(node)
        behind = trace.known.get(node)
        if taken:
            return True
        if taken is None and isinstance(behind, Tracer):
            stack.append((behind.trace, behind.node))
    return False


class _AbstractInputError(Exception):
    """A value depends on an input without numbers."""

    def __init__(self, trace: Trace, node: Node) -> None:
        super().__init__(node.name)
        self.trace = trace
        self.node = node


def _evaluate(trace: Trace, target: Node) -> Array:
    stack = [target]
    try:
        _evaluate_all(trace, stack)
    except _AbstractInputError as error:
        _note_abstract(trace, stack, error)
        raise
    result = trace.known[target]
    assert isinstance(result, Array)
    return result


def _evaluate_all(trace: Trace, stack: list[Node]) -> None:
    """Evaluates the nodes of the stack, and what they need, from its end."""
    known = trace.known
    while stack:
        node = stack[-1]
        value = known.get(node)
        if isinstance(value, Array):
            stack.pop()
        elif node in trace.abstract:
            raise _AbstractInputError(*trace.abstract[node])
        elif isinstance(value, Tracer):
            known[node] = _evaluate(value.trace, value.node)
        elif node.op == INPUT or OPERATIONS[node.op].family == "axis":
            raise _AbstractInputError(trace, node)
        else:
            made_by = _made_by(node)
            if has_effects(made_by):  # they are to happen when the program runs
                raise _AbstractInputError(trace, made_by)
            read = made_by.operands
            missing = [operand for operand in read if not isinstance(known.get(operand), Array)]
            stack.extend(missing)
            if not missing:
                known[node] = _run(node, [known[operand] for operand in read])


def _made_by(node: Node) -> Node:
    return node.operands[0] if node.op == "item" else node


def _note_abstract(trace: Trace, stack: list[Node], error: _AbstractInputError) -> None:
    """Remembers those of the stack that have no numbers: a program that asks again and again walks its graph once."""
    found = trace.abstract
    for number, node in enumerate(reversed(stack)):
        if number == 0 or any(operand in found for operand in _made_by(node).operands):
            found[node] = error.trace, error.node


def _run(node: Node, operands: Sequence[Any]) -> Array:
    """Runs one operation; an operation with several results runs together with the items taken from it."""
    if node.op != "item":
        return run_operation(node.op, operands, node.attrs, node.type)
    from lavax.tracer.compiled.stages import executable  # which imports this module

    (whole,) = node.operands
    inputs = tuple(input_node(f"x{number}", operand.type) for number, operand in enumerate(operands))
    result = with_operands(node, (with_operands(whole, inputs),))
    return executable(remove_stop_gradient(graph_of(inputs, (result,))), (False,))(operands)[0]


_FOR_NUMPY = (
    "For a function of NumPy take the one of that name in lavax.numpy, for a NumPy array that this is an index of, "
    "lavax.numpy.asarray(array)"
)
_FOR_PYTHON = (
    "For a choice between values use lavax.numpy.where; for control flow on data lavax.cond or lavax.while_loop"
)


def _concretization_error(tracer: Tracer, wanted: str, cause: _AbstractInputError) -> ConcretizationError:
    location, node = user_location(), cause.node
    advice = _FOR_NUMPY if wanted == AS_NUMPY else _FOR_PYTHON
    return ConcretizationError(
        f"{location or 'unknown line'}: {wanted} asks for the number behind a traced value ({describe(tracer)}), which "
        f"depends on the argument {node.name or node.op} ({node.type}) of the {cause.trace.purpose} and is known only "
        f"when the program runs. {advice}; if the argument is a setting and not data, name it in static_argnames."
    )
