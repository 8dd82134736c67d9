"""`bind`, through which every operation is applied."""
from __future__ import annotations

from typing import Any

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import TensorType
from lavax.ir.graph import make_node
from lavax.ir.location import for_user, user_location
from lavax.tracer.tracing.trace import active_trace, resumed
from lavax.tracer.tracing.tracer import Tracer, node_in, require_alive
from lavax.tracer.values.array import Array, with_weakness
from lavax.tracer.values.eager import run_operation
from lavax.tracer.values.value import Value


def bind(op: str, /, *operands: Value, type: TensorType | None = None, **attrs: Any) -> Value:
    """Applies an operation of lavax.ir to values; the result is strong.

    Inside a trace the operation is recorded; outside it runs at once. `type` is the type of the result, for operations
    whose operands do not determine it (constant, iota, cast, reshape, broadcast). Raises ShapeError or DtypeError, with
    the user's line, if the operands do not fit, and TracerLeakError for a tracer whose trace has ended.
    """
    trace = active_trace()
    try:
        if trace is None:
            for operand in operands:
                if isinstance(operand, Tracer):
                    with resumed(operand.trace) as recording:
                        if recording:
                            return bind(op, *operands, type=type, **attrs)
                    require_alive(operand)
            return run_operation(op, operands, attrs, type)  # type: ignore[arg-type]  # no tracer is alive here
        nodes = [node_in(trace, operand) for operand in operands]
        return Tracer(trace, make_node(op, nodes, attrs, type, user_location()))
    except (ShapeError, DtypeError) as error:
        raise _located(error) from None


def with_weak(value: Value, weak: bool = True) -> Value:
    """The same value, weak or strong."""
    if value.weak == weak:
        return value
    if isinstance(value, Tracer):
        return Tracer(value.trace, value.node, weak)
    assert isinstance(value, Array)
    return with_weakness(value, weak)


def _located(error: ShapeError | DtypeError) -> ShapeError | DtypeError:
    """The same error with the user's function and line."""
    return type(error)(for_user(str(error)))
