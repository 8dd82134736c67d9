"""Losses minimised by an optimizer to a tolerance, in one compiled loop."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.apply import apply_updates
from lavax.optim.line_search.lbfgs import lbfgs
from lavax.optim.transforms.transformation import GradientTransformation, with_extra_args_support
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import conj, wide, wide_tree
from lavax.optim.tree.states import get
from lavax.tracer.control_flow.branches import cond
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.grad import value_and_grad


class MinimizeResult(NamedTuple):
    """The parameters found, the loss and the largest number of the gradient there, and how many steps were taken.

    `converged` says whether that largest number is at most the tolerance.
    """

    params: Any
    value: Any
    gradient_size: Any
    steps: Any
    converged: Any


def value_and_grad_from_state(value_fn: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """A function like `value_and_grad(value_fn)` that takes both from `state=` where a line search has left them.

    A new state has none, so that they are computed there. Raises ValueError if the state holds no value or gradient.
    """

    def computed(params: Any, *args: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, grad = get(state, "value"), get(state, "grad")
        if value is None or grad is None:
            raise ValueError(
                "value_and_grad_from_state: the state holds no value or gradient; use optim.lbfgs, or a line search "
                "with store_grad=True"
            )

        def anew() -> tuple[Any, Any]:
            found, gradient = value_and_grad(value_fn)(params, *args, **kwargs)
            return lnp.astype(wide(found), value.dtype), wide_tree(gradient)

        return cond(lnp.isfinite(value), lambda: (value, grad), anew)  # type: ignore[no-any-return]

    return computed


def minimize(
    value_fn: Callable[..., Any], params: Any, *args: Any, optimizer: GradientTransformation | None = None,
    max_steps: int = 100, tol: float = 1e-4, **kwargs: Any,
) -> MinimizeResult:
    """Minimises `value_fn(params, *args, **kwargs)` from `params`, by `lbfgs()` unless `optimizer` is another.

    It stops when no number of the gradient exceeds `tol`, or after `max_steps`. May be called in compiled functions.
    """
    method = with_extra_args_support(optimizer or lbfgs())

    def loss(held: Any) -> Any:
        return value_fn(held, *args, **kwargs)

    def evaluated(held: Any) -> tuple[Any, Any]:
        value, gradient = value_and_grad(loss)(held)
        return wide(value), wide_tree(gradient)

    def evaluated_after(now: Any, state: Any) -> tuple[Any, Any]:
        kept = get(state, "value") is not None and get(state, "grad") is not None
        return value_and_grad_from_state(loss)(now, state=state) if kept else evaluated(now)

    def unfinished(held: Any) -> Any:
        count, _, _, _, gradient = held
        return (count < max_steps) & (norm(gradient, ord="inf") > tol)

    def step(held: Any) -> Any:
        count, now, state, value, gradient = held
        uphill = conj(gradient)
        updates, state = method.update(uphill, state, now, value=value, grad=uphill, value_fn=loss)
        now = apply_updates(now, updates)
        return count + 1, now, state, *evaluated_after(now, state)

    begin = lnp.zeros((), lnp.int32), params, method.init(params), *evaluated(params)
    count, found, _, value, gradient = while_loop(unfinished, step, begin)
    size = norm(gradient, ord="inf")
    return MinimizeResult(found, value, size, count, size <= tol)
