"""Checks within functions that are traced, by the names of jax.experimental.checkify.

`checkify(f)` returns what failed beside the result of `f`, through `jit`, `vmap`, loops and branches. Without it, a
check that fails raises CheckError when the program has run.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lavax.base.errors import CheckError
from lavax.ir.location import user_error
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.pytrees.node_classes import register_pytree_node
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.tracing.automatic_checks import DIVISION, INDEX, NAN, checking
from lavax.tracer.tracing.checks import Check
from lavax.tracer.tracing.convert import lift
from lavax.tracer.tracing.effects import Effect, emit, emit_again, parted
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.tracing.tracing import trace_function
from lavax.tracer.transforms.arguments import arguments_of
from lavax.tracer.transforms.transformed_call import run_finished
from lavax.tracer.values.value import Value

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error", "checkify",
    "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]  # fmt: skip

JaxRuntimeError = CheckError
ErrorCategory = str
_USER, _DEBUG = "user", "debug"  # checks of `check`; of `debug_check`, which counts only within `checkify`
user_checks = frozenset({_USER})
nan_checks = frozenset({NAN})
div_checks = frozenset({DIVISION})
index_checks = frozenset({INDEX})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """What `checkify` found: a container of the truth values of all checks, and of the values that messages show."""

    def __init__(self, checks: tuple[Check, ...] = (), values: Sequence[Sequence[Any]] = ()) -> None:
        self._checks = checks
        self._values = values

    def get(self) -> str | None:
        """The message of the first check that failed; None if all hold. Of many elements, a line for each that failed.

        Waits for the program. Raises ConcretizationError in a trace.
        """
        numbers = [[np.asarray(value) for value in values] for values in self._values]
        # Elements of a vmap are in front; what `vmap` has given no axis is the same for all.
        mapped = max((values[0].shape for values in numbers), key=len, default=())
        failures = [(place, self._message(numbers, place)) for place in np.ndindex(mapped)]
        if not mapped:
            return failures[0][1]
        lines = [f"at mapped index {', '.join(map(str, place))}: {text}" for place, text in failures if text]
        return "\n".join(lines) or None

    def _message(self, numbers: Sequence[Sequence[np.ndarray]], place: tuple[int, ...]) -> str | None:
        for check, values in zip(self._checks, numbers, strict=True):
            taken = [value[place] for value in values]
            if not taken[0]:
                return check.message(taken[1:])
        return None

    def throw(self) -> None:
        """Raises CheckError, with the message that `get` returns, if there is one; within a trace `check_error`."""
        check_error(self)

    def __repr__(self) -> str:
        known = not any(isinstance(value, Tracer) for values in self._values for value in values)
        return f"Error({self.get()})" if known else f"Error({len(self._checks)} checks)"


register_pytree_node(
    Error, lambda error: (error._values, error._checks), lambda checks, values: Error(checks, values)
)
init_error = Error()


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Checks that `pred`, a scalar truth value, is true; the error is `msg.format(*fmt_args, **fmt_kwargs)`.

    Outside of traces it raises CheckError at once. In a function given to `checkify` it is one of the checks of that;
    in another traced function CheckError is raised when its program has run. With `debug` it is a `debug_check`. Raises
    TypeError if `pred` is no scalar truth value.
    """
    holds = lift(pred) if isinstance(pred, (Value, bool, np.bool_, np.ndarray)) else None
    if holds is None or holds.shape or holds.type.dtype.kind != "bool":
        raise user_error(TypeError, f"check takes a scalar truth value, got {pred!r:.60}")
    leaves, structure = flatten((fmt_args, fmt_kwargs))

    def message(numbers: Sequence[np.ndarray]) -> str:
        positional, keywords = unflatten(structure, [number[()] for number in numbers])
        return f"{msg.format(*positional, **keywords)} (`check` failed)"

    if not debug or active_trace() is not None:
        emit(Check(_DEBUG if debug else _USER, message), [holds, *map(lift, leaves)])


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """As `check`, but nothing where the function was not given to `checkify`."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises CheckError if a check of `error` failed; within a trace its checks are again checks of that."""
    if active_trace() is None:
        message = error.get()
        if message is not None:
            raise CheckError(message)
        return
    for each, values in zip(error._checks, error._values, strict=True):
        emit(each, values)


def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """A function that returns an Error and the result of `f`.

    `errors` says which checks count: `user_checks`, those of `check`; `nan_checks`, `div_checks` and `index_checks`,
    which are made for every operation: that it returns no NaN, divides by nothing that is zero, and reads and writes
    within arrays, where no `mode` says what to do outside; `float_checks` are the first two, `all_checks` all.
    """
    signature = signature_of(f, "checkify")

    @wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        arguments = arguments_of(signature, args, kwargs)

        def run(tracers: list[Value]) -> Any:
            positional, keywords = arguments.with_values(tracers)
            return f(*positional, **keywords)

        with checking(errors):
            purpose = f"checkify of {signature.function}"
            traced = trace_function(run, arguments.as_inputs(), purpose, keep_effects=True)
        outputs = run_finished(traced.graph, [*arguments.values, *traced.captured], traced.weak)
        count = traced.structure.leaf_count
        found = dict(_counted(traced.effects, outputs[count:], errors))
        return Error(tuple(found), tuple(found.values())), unflatten(traced.structure, outputs[:count])

    return checked


def _counted(
    effects: Sequence[Effect], values: Sequence[Value], errors: frozenset[ErrorCategory]
) -> Iterator[tuple[Check, tuple[Value, ...]]]:
    """The checks that count, and their values. Other effects take place."""
    for effect, taken in parted(effects, values):
        if not isinstance(effect.act, Check):
            emit_again([effect], taken)
        elif effect.act.category in errors or (effect.act.category == _DEBUG and _USER in errors):
            yield effect.act, tuple(taken)
