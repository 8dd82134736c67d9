"""The values that a loop carries from one iteration to the next, of one structure and of fixed types."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.base.errors import ControlFlowTypeError
from lavax.ir import TensorType
from lavax.ir.location import user_error
from lavax.tracer.control_flow.bodies import output_types, require_same, trace_body
from lavax.tracer.pytrees.pytree import TreeDef
from lavax.tracer.tracing.bind import bind, with_weak
from lavax.tracer.tracing.tracing import Traced
from lavax.tracer.values.abstract import Abstract
from lavax.tracer.values.value import Value

_KINDS = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}


def trace_loop_body(
    name: str, function: Callable[..., Any], structures: list[TreeDef], carried: list[Value], others: list[Abstract]
) -> tuple[Traced, list[Value]]:
    """The traced body, and the values carried into the first iteration, of the types that the body returns.

    A weak value takes the dtype of the body's result, unless that is of a lower kind. With two structures the body
    returns a pair, whose first part is carried. Raises ControlFlowTypeError if that differs from the carried values in
    structure, shapes or dtypes.
    """
    body = trace_body(function, structures, [*(value.abstract for value in carried), *others], f"{name} body")
    given, types = body.structure, output_types(body)
    if len(structures) == 2:
        if len(given.children) != 2:
            raise user_error(ControlFlowTypeError, f"{name}: the body must give a pair (carry, y), got {given}")
        given = given.children[0]
    if given == structures[0]:
        outputs = zip(carried, types, body.weak, strict=False)
        first = [settled(value, type, weak) for value, type, weak in outputs]
        if any(new is not old for new, old in zip(first, carried, strict=True)):
            return trace_loop_body(name, function, structures, first, others)
    require_same(f"{name}: the body", given, types, "its argument", structures[0], [v.type for v in carried])
    return body, carried


def settled(value: Value, type: TensorType, weak: bool) -> Value:
    """A carried value in the dtype that the body returns for it, if it is weak and that holds it; otherwise itself."""
    if not value.weak or value.shape != type.shape or _KINDS[value.type.dtype.kind] > _KINDS[type.dtype.kind]:
        return value
    if value.type != type:
        return bind("cast", value, type=type)
    return value if weak else with_weak(value, False)
