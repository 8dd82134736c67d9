"""Functions whose intermediate values are computed again for the gradient instead of being kept."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

from lavax.tracer.calls.signature import require_function
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.transforms.transformed_call import transformed_call

Policy = Literal["nothing", "dots", "everything"]
_POLICIES = ("nothing", "dots", "everything")


def checkpoint(function: Callable[..., Any], policy: Policy = "nothing") -> Callable[..., Any]:
    """The same function; its gradient takes less memory and more work.

    `policy` names the values that are kept for the gradient besides the arguments: "nothing" (all are computed
    again), "dots" (the results of matrix products are kept), "everything" (as without checkpoint). Raises ValueError
    for another policy.
    """
    if policy not in _POLICIES:
        raise ValueError(f"checkpoint: policy {policy!r} is none of {', '.join(_POLICIES)}")

    require_function(function, "checkpoint takes a function")

    @functools.wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if active_trace() is None or policy == "everything":
            return function(*args, **kwargs)
        call = transformed_call(function, args, kwargs, "checkpoint")
        (body,), captured = with_common_captures([call.traced], len(call.arguments.inputs))
        types = [node.type for node in body.outputs]
        operands = [*call.arguments.values, *captured]
        results = apply_control_flow("checkpoint", operands, types, call.traced.weak, keep=policy, body=body)
        return call.parts(results)[0]

    return checkpointed
