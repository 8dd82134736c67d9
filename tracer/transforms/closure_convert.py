"""Functions without closures: captured values become arguments."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.base.errors import TreeMismatchError
from lavax.ir.location import user_error
from lavax.tracer.calls.call import call_of, named_conversion
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.tracing.convert import abstract_of, lift
from lavax.tracer.tracing.tracing import trace_call, without_effects
from lavax.tracer.values.value import Value


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Value]]:
    """`(converted, values)`: `converted(*args, *values)` is `function(*args)` and closes over nothing.

    `values` are the arrays and traced values that `fun` captures. They can be passed as arguments, for instance
    through a function with a custom_vjp rule. `example_args` are arrays, numbers or anything with `shape` and `dtype`;
    `converted` takes arguments of exactly their structures and shapes, and raises TreeMismatchError for others.
    """
    signature = signature_of(fun, "closure_convert")
    call, leaves = call_of(example_args, {})
    kinds = named_conversion(abstract_of, leaves, call, signature)
    traced = without_effects(trace_call(fun, signature, call, kinds, "closure_convert"))
    count = len(example_args)

    def converted(*args: Any) -> Any:
        given, found = call_of(args[:count], {})
        if given.positional is not call.positional or len(args) != count + len(traced.captured):
            raise user_error(
                TreeMismatchError,
                f"closure_convert of {signature.function}: made for the arguments {call.positional!r} and "
                f"{len(traced.captured)} values, got {given.positional!r} and {len(args) - count}",
            )
        values = [lift(leaf) for leaf in (*found, *args[count:])]
        return unflatten(traced.structure, apply_graph(traced.graph, values, traced.weak))

    return converted, list(traced.captured)
