"""Functions whose intermediate values are computed again for the gradient instead of being kept."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

from lavax.tracer.calls.signature import require_function
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.transforms.transformed_call import transformed_call

Policy = Literal["nothing", "dots", "everything"]
_POLICIES = ("nothing", "dots", "everything")


class CheckpointPolicies:
    """The policies of `checkpoint` by JAX's names: `checkpoint_policies.dots_saveable`.

    Products with batch axes count as products; policies by names keep nothing, and `checkpoint_name` names nothing.
    The gradient is the same in any case: only its memory and its work differ.
    """

    everything_saveable: Policy = "everything"
    nothing_saveable: Policy = "nothing"
    dots_saveable: Policy = "dots"
    checkpoint_dots: Policy = "dots"
    dots_with_no_batch_dims_saveable: Policy = "dots"
    checkpoint_dots_with_no_batch_dims: Policy = "dots"

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Keeps nothing: values have no names here."""
        return "nothing"

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Keeps everything: values have no names here."""
        return "everything"

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Keeps nothing: values have no names here."""
        return "nothing"

    @staticmethod
    def save_from_both_policies(one: Policy, other: Policy) -> Policy:
        """Keeps what either of two policies keeps."""
        return max(one, other, key=_POLICIES.index)


checkpoint_policies = CheckpointPolicies()


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` itself: see CheckpointPolicies."""
    return x


def checkpoint(
    fun: Callable[..., Any],
    policy: Policy | None = None,
    *,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[..., Any]:
    """The same function; its gradient takes less memory and more work.

    `policy` names the values that are kept for the gradient besides the arguments: "nothing" (all are computed
    again; the default), "dots" (the results of matrix products are kept), "everything" (as without checkpoint).
    `static_argnums` and `static_argnames` are settings, passed to the function as they are. `prevent_cse` is taken as
    JAX takes it, and changes nothing. Raises ValueError for another policy.
    """
    keep = "nothing" if policy is None else policy
    if keep not in _POLICIES:
        raise ValueError(f"checkpoint: policy {policy!r} is none of {', '.join(_POLICIES)}")

    require_function(fun, "checkpoint takes a function")
    chosen = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if active_trace() is None or keep == "everything":
            return fun(*args, **kwargs)
        settings = {name: kwargs.pop(name) for name in names if name in kwargs}
        if settings:
            return checkpoint(functools.partial(fun, **settings), keep, static_argnums=chosen)(*args, **kwargs)
        static = {number % len(args) for number in chosen}
        if static:
            others = [each for number, each in enumerate(args) if number not in static]
            return checkpoint(_with_fixed(fun, static, args), keep)(*others, **kwargs)
        call = transformed_call(fun, args, kwargs, "checkpoint", concerned=lambda call: ())
        (body,), captured = with_common_captures([call.traced], len(call.arguments.inputs))
        types = [node.type for node in body.outputs]
        operands = [*call.arguments.values, *captured]
        results = apply_control_flow("checkpoint", operands, types, call.traced.weak, keep=keep, body=body)
        return call.parts(results)[0]

    return checkpointed


def _with_fixed(function: Callable[..., Any], fixed: set[int], args: Sequence[Any]) -> Callable[..., Any]:
    """`function` of the other arguments, with those at `fixed` taken from `args`."""

    def of_others(*others: Any, **kwargs: Any) -> Any:
        rest = iter(others)
        return function(*(each if number in fixed else next(rest) for number, each in enumerate(args)), **kwargs)

    return of_others
