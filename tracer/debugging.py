"""Looking into functions while they run: prints, callbacks, the first NaN, traced values that got away."""
from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lavax.errors import NaNError, TracerLeakError
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of
from lavax.passes.builder import build, concatenate, reshape
from lavax.passes.inline import inline_calls
from lavax.passes.simplify import remove_stop_gradient
from lavax.tracer.convert import is_numeric, lift
from lavax.tracer.effects import emit
from lavax.tracer.executable import apply_graph
from lavax.tracer.pytree import flatten, unflatten
from lavax.tracer.trace import active_trace
from lavax.tracer.tracer import Tracer, describe
from lavax.tracer.transformed_call import transformed_call
from lavax.tracer.value import Value


def callback(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Calls `function` on the host with these arguments, in which values are NumPy arrays (scalars of rank 0).

    In a compiled function it is called each time the function has run, in the order of the calls in it; under `vmap`
    and in `scan` once for each element or step, in a branch if that is taken, in `while_loop` for its first turns (as
    many as lavax.tracer.loop_log keeps). What it gives is not used. In the rules of custom_vjp and custom_jvp it
    raises SideEffectError.
    """
    leaves, structure = flatten((args, kwargs))
    traced = [position for position, leaf in enumerate(leaves) if is_numeric(leaf)]

    def act(arrays: Sequence[np.ndarray]) -> None:
        given = list(leaves)
        for position, array in zip(traced, arrays, strict=True):
            given[position] = array[()]
        positional, keywords = unflatten(structure, given)
        function(*positional, **keywords)

    values = [lift(leaves[position]) for position in traced]
    for position in traced:
        leaves[position] = None  # the closure outlives the trace
    emit(act, values)


def print(format: str, *args: Any, **kwargs: Any) -> None:
    """Prints `format.format(*args, **kwargs)` with the numbers behind values; when and where, as `callback`."""
    callback(lambda *given, **named: sys.stdout.write(f"{format.format(*given, **named)}\n"), *args, **kwargs)


def nans(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which raises NaNError where something in it gives NaN.

    The error names the first operation that gave one, its operands and the user's line. All is computed in one program
    with one more result for each value, so it is slower. Inside a trace it does nothing.
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if active_trace() is not None:
            return function(*args, **kwargs)
        call = transformed_call(function, args, kwargs, "debug.nans")
        graph = inline_calls(call.graph)
        suspects = [node for node in (*graph.inputs, *graph.nodes) if node.dtype.is_float and node.type.size]
        whole = remove_stop_gradient(graph_of(graph.inputs, (*graph.outputs, *_flags(suspects))))
        weak = [*call.traced.weak, *[False] * (len(whole.outputs) - len(graph.outputs))]
        outputs = apply_graph(whole, call.values, weak)
        _refuse_nans(graph, suspects, outputs[len(graph.outputs) :], call.arguments.signature.function)
        return call.parts(outputs)[0]

    return checked


def _flags(suspects: Sequence[Node]) -> list[Node]:
    """Whether each holds a NaN, as one bool vector."""
    found = []
    for node in suspects:
        different = build("not_equal", node, node)
        found.append(reshape(build("max", different, axes=tuple(range(node.type.rank))), (1,)))
    return [concatenate(found, 0)] if found else []


def _refuse_nans(graph: Graph, suspects: Sequence[Node], flags: Sequence[Value], function: str) -> None:
    held = np.asarray(flags[0]) if flags else np.zeros(0, np.bool_)
    if not held.any():
        return
    node = suspects[int(held.argmax())]
    where = f", at {node.location}" if node.location else ""
    if node in graph.inputs:
        raise NaNError(f"{function}: its argument or captured value {node.name} ({node.type}) holds NaN")
    operands = ", ".join(str(operand.type) for operand in node.operands)
    raise NaNError(
        f"{function}: the first NaN is a result of {node.op}({operands}) : {node.type}{where}. None of its operands "
        "held one. Look for 0/0, inf - inf, 0·inf, and for log, sqrt or power outside their domain; where a branch of "
        "where is not taken, make its operand safe before the operation"
    )


@contextmanager
def check_leaks() -> Iterator[None]:
    """Within it, raises TracerLeakError at the end where traced values are still held whose trace has ended.

    It looks at all objects there are, which takes a while.
    """
    gc.collect()
    before = {id(tracer) for tracer in _ended_tracers()}
    yield
    gc.collect()
    leaked = [tracer for tracer in _ended_tracers() if id(tracer) not in before]
    if leaked:
        listed = "; ".join(f"{describe(tracer)}, of the {tracer.trace.purpose}" for tracer in leaked[:5])
        raise TracerLeakError(
            f"{len(leaked)} traced values are still held after their traces have ended: {listed}. Return what is "
            "needed from the function, and keep no traced values in lists, attributes or globals"
        )


def _ended_tracers() -> list[Tracer]:
    return [each for each in gc.get_objects() if type(each) is Tracer and each.trace.ended]
