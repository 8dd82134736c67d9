"""Functions whose intermediate values are computed again for the gradient instead of being kept."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lavax.ir.location import user_error
from lavax.tracer.calls.signature import require_function
from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.transforms.checkpoint_policies import Policy, Values, keeping_names, policy_of
from lavax.tracer.transforms.transformed_call import transformed_call


def checkpoint(
    fun: Callable[..., Any],
    policy: Policy | Values | None = None,
    *,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Any]:
    """The same function; its gradient takes less memory and more work.

    `policy` says which values are kept for the gradient besides the arguments: "nothing" (all are computed again; the
    default), "dots" (the results of matrix products are kept), "everything" (as without checkpoint), or one of
    `checkpoint_policies`, which keep values by the names that `ad_checkpoint.checkpoint_name` gives them.
    `static_argnums` and `static_argnames` are settings, passed to the function as they are. `prevent_cse` is taken as
    JAX takes it, and changes nothing. Raises ValueError for another policy, and the result for a static argument that a
    call does not have.
    """
    chosen_policy = policy_of(policy)
    require_function(fun, "checkpoint takes a function")
    chosen = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        outside = [number for number in chosen if not -len(args) <= number < len(args)]
        if outside:
            given = f"static_argnums {outside} of a call with {len(args)} arguments by position"
            raise user_error(ValueError, f"checkpoint: {given}")
        if active_trace() is None or chosen_policy.values == "everything":
            return fun(*args, **kwargs)
        settings = {name: kwargs.pop(name) for name in names if name in kwargs}
        if settings:
            return checkpoint(functools.partial(fun, **settings), chosen_policy, static_argnums=chosen)(*args, **kwargs)
        static = {number % len(args) for number in chosen}
        if static:
            others = [each for number, each in enumerate(args) if number not in static]
            return checkpoint(_with_fixed(fun, static, args), chosen_policy)(*others, **kwargs)
        call = transformed_call(
            _with_kept_names(fun, chosen_policy), args, kwargs, "checkpoint", has_aux=True, concerned=lambda call: ()
        )
        (body,), captured = with_common_captures([call.traced], len(call.arguments.inputs))
        types = [node.type for node in body.outputs]
        operands = [*call.arguments.values, *captured]
        named = len(types) - call.structure.leaf_count
        attrs = {"keep": chosen_policy.values, "body": body, "named": named}
        results = apply_control_flow("checkpoint", operands, types, call.traced.weak, **attrs)
        return call.parts(results)[0]

    return checkpointed


def _with_kept_names(function: Callable[..., Any], policy: Policy) -> Callable[..., Any]:
    """`function`, with a second result: the values that `policy` keeps by their names."""

    @wraps(function)
    def with_kept(*args: Any, **kwargs: Any) -> Any:
        with keeping_names(policy) as kept:
            result = function(*args, **kwargs)
        return result, kept

    return with_kept


def _with_fixed(function: Callable[..., Any], fixed: set[int], args: Sequence[Any]) -> Callable[..., Any]:
    """`function` of the other arguments, with those at `fixed` taken from `args`."""

    def of_others(*others: Any, **kwargs: Any) -> Any:
        rest = iter(others)
        return function(*(each if number in fixed else next(rest) for number, each in enumerate(args)), **kwargs)

    return of_others
