"""Debugging of running functions: prints, callbacks, the first NaN, leaked traced values."""
from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lavax.base.errors import TracerLeakError
from lavax.tracer.calls.signature import require_function
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.compiled.nan_check import NaNChecked
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.tracing.convert import is_numeric, lift
from lavax.tracer.tracing.effects import emit
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import Tracer, describe
from lavax.tracer.transforms.transformed_call import transformed_call


def callback(function: Callable[..., Any], *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Calls `function` on the host with these arguments; values in them become NumPy arrays (scalars of rank 0).

    In a compiled function it is called after each run of the program, in the order of the calls in the function: under
    `vmap` and in `scan` once per element or step, in a branch if that is taken, in `while_loop` for its first 1,024
    iterations (fewer for large arrays). Its result is not used. Calls are always in order: `ordered` changes nothing.
    In the rules of custom_vjp and custom_jvp it raises SideEffectError.
    """
    require_function(function, "debug.callback takes a function")
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


def print(format: str, *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Prints `format.format(*args, **kwargs)` with the numbers of the values, when `callback` would call.

    Prints are always in order: `ordered` changes nothing.
    """
    callback(lambda *given, **named: sys.stdout.write(f"{format.format(*given, **named)}\n"), *args, **kwargs)


def nans(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which raises NaNError if an operation in it returns NaN.

    The error names the first such operation, its operands and the user's line; for operations in branches and loops it
    names the branch or loop. One program computes all values and checks each, so it is slower. Inside a trace this does
    nothing. LAVAX_DEBUG_NANS=1 does the same for everything that runs.
    """

    require_function(function, "debug.nans takes a function")

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if active_trace() is not None:
            return function(*args, **kwargs)
        call = transformed_call(function, args, kwargs, "debug.nans")
        check = NaNChecked(call.arguments.signature.function, call.graph, call.traced.weak)
        return call.parts(check(call.values))[0]  # type: ignore[arg-type]  # outside a trace all are arrays

    return checked


@contextmanager
def check_leaks() -> Iterator[None]:
    """A context that at its end raises TracerLeakError if traced values are still held after their traces have ended.

    It examines all Python objects, which takes a while.
    """
    gc.collect()
    before = {id(tracer) for tracer in _ended_tracers()}
    yield
    gc.collect()
    leaked = [tracer for tracer in _ended_tracers() if id(tracer) not in before]
    if leaked:
        listed = "; ".join(f"{describe(tracer)}, of the {tracer.trace.purpose}" for tracer in leaked[:5])
        raise TracerLeakError(
            f"{len(leaked)} traced values are still held after their traces have ended: {listed}. Return the values "
            "that are needed from the function, and keep no traced values in lists, attributes or globals"
        )


def _ended_tracers() -> list[Tracer]:
    return [each for each in gc.get_objects() if type(each) is Tracer and each.trace.ended]
