"""Counted loops: fori_loop, a scan or a while loop. Names and arguments are JAX's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lavax.base.errors import ConcretizationError, DtypeError
from lavax.ir.default_dtypes import default_integer
from lavax.ir.location import user_error
from lavax.ir.types import TensorType
from lavax.tracer.calls.signature import require_function
from lavax.tracer.control_flow.bodies import INDEX
from lavax.tracer.control_flow.scan import named_scan
from lavax.tracer.control_flow.while_loop import named_while_loop
from lavax.tracer.tracing.bind import bind, with_weak
from lavax.tracer.tracing.convert import constant, lift
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.values.value import Value


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`; gives the last value.

    The number i yields to other dtypes as Python's numbers do: with a value of int8 it is int8.
    With bounds that are known while tracing (Python or NumPy integers, and arrays by which no derivative is taken
    under `grad`) it is a scan, which has reverse mode; otherwise a while_loop. Raises DtypeError if a bound is not
    an integer scalar, ControlFlowTypeError if the body does not return the types it takes.
    """
    require_function(body_fun, "fori_loop body must be a function")
    lower, upper = _known(lower), _known(upper)
    if isinstance(lower, int) and isinstance(upper, int):
        index = INDEX.with_dtype(default_integer())
        first = constant(lower, index)

        def step(state: Any, _: Any) -> tuple[Any, None]:
            counter, value = state
            return (bind("add", counter, constant(1, index)), body_fun(with_weak(counter), value)), None

        (_, result), _ = named_scan("fori_loop", step, (first, init_val), None, length=max(upper - lower, 0))
        return result
    start, end = (_bound(*each) for each in (("lower", lower), ("upper", upper)))

    def running(state: Any) -> Value:
        return bind("less", state[0], end)

    def body(state: Any) -> tuple[Any, Any]:
        counter, value = state
        return bind("add", counter, constant(1, counter.type)), body_fun(with_weak(counter), value)

    if start.type != end.type:
        common = _common(start, end)
        start, end = (value if value.type == common else bind("cast", value, type=common) for value in (start, end))
    return named_while_loop("fori_loop", running, body, (with_weak(start, False), init_val))[1]


def _common(start: Value, end: Value) -> TensorType:
    """The type of a counter between bounds of two dtypes: a Python number yields to an array of at least 32 bits."""
    strong = [value.type for value in (start, end) if not value.weak]
    yields = len(strong) == 1 and strong[0].dtype.bits >= INDEX.dtype.bits
    return strong[0] if yields else INDEX.with_dtype(default_integer())


def _known(bound: Any) -> Any:
    """The bound as a Python integer if it is known; a traced one may be, an array outside of traces stays data."""
    is_number = isinstance(bound, np.ndarray) and not bound.shape and bound.dtype.kind in "iu"
    if is_number or isinstance(bound, (int, np.integer)):
        return int(bound)
    if active_trace() is None or not isinstance(bound, Value) or bound.shape or not bound.type.dtype.is_integer:
        return bound
    try:
        return int(bound)
    except ConcretizationError:
        return bound


def _bound(name: str, given: Any) -> Value:
    value = lift(given)
    if value.shape or not value.type.dtype.is_integer:
        raise user_error(DtypeError, f"fori_loop: {name} must be an integer scalar, got {value.type}")
    return value
