"""Backtracking: steps that shrink until the loss falls enough (Armijo 1966)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.line_search.line import bound_loss, no_value, number, point_on_line, violation
from lavax.optim.transforms.transformation import GradientTransformationExtraArgs, require_params
from lavax.optim.tree.arithmetic import real_vdot
from lavax.optim.tree.precision import wide_tree, zeros_like
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.pytrees import pytree
from lavax.tracer.transforms.grad import grad as gradient_of


class BacktrackingLinesearchInfo(NamedTuple):
    """How many steps were tried (int32), and by how much the last falls short of the decrease asked for."""

    num_linesearch_steps: Any
    decrease_error: Any


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """The last step's length; the loss there and, where it is kept, the gradient; and how the search went."""

    learning_rate: Any
    value: Any
    grad: Any
    info: BacktrackingLinesearchInfo


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int, slope_rtol: Any = 1e-4, decrease_factor: Any = 0.8, increase_factor: Any = 1.5,
    max_learning_rate: Any = 1.0, atol: Any = 0.0, rtol: Any = 0.0, store_grad: bool = False,
) -> GradientTransformationExtraArgs:
    """Updates times the first length t for which loss(t) <= (1 + rtol) · loss + t · slope_rtol · slope + atol.

    The first t is `increase_factor` times that of the step before, at most `max_learning_rate`; the next ones are
    `decrease_factor` times the one before. `update` needs the parameters, `value=`, `grad=` and `value_fn=`. With
    `store_grad` the state holds the gradient at the new parameters (see `value_and_grad_from_state`).
    """
    name = "scale_by_backtracking_linesearch"

    def init(params: Any) -> ScaleByBacktrackingLinesearchState:
        info = BacktrackingLinesearchInfo(lnp.zeros((), lnp.int32), no_value())
        held = zeros_like(params) if store_grad else None
        return ScaleByBacktrackingLinesearchState(lnp.ones(()), no_value(), held, info)

    def update(
        updates: Any, state: ScaleByBacktrackingLinesearchState, params: Any = None, *, value: Any, grad: Any,
        value_fn: Callable[..., Any], **extra_args: Any,
    ) -> tuple[Any, ScaleByBacktrackingLinesearchState]:
        require_params(name, params)
        loss, start = bound_loss(name, value_fn, extra_args), number(value)
        slope = real_vdot(updates, grad)

        def unfinished(held: Any) -> Any:
            tried, _, _, error = held
            return ~(error <= atol) & (tried <= max_backtracking_steps)

        def shorter(held: Any) -> Any:
            tried, size, _, _ = held
            size = lnp.where(tried > 0, decrease_factor * size, size)
            found = number(loss(point_on_line(params, size, updates)))
            error = violation(found - (1 + rtol) * start - size * slope_rtol * slope)
            return tried + 1, size, found, error

        first = lnp.minimum(increase_factor * state.learning_rate, max_learning_rate)
        begin = lnp.zeros((), lnp.int32), first, start, lnp.asarray(lnp.inf, lnp.float32)
        tried, size, found, error = while_loop(unfinished, shorter, begin)
        # Where even the last step leads to infinity or NaN, the parameters stay.
        size = lnp.where(lnp.isinf(error), 0, size)
        at_end = wide_tree(gradient_of(loss)(point_on_line(params, size, updates))) if store_grad else None
        info = BacktrackingLinesearchInfo(tried, error)
        return pytree.map(lambda u: size * u, wide_tree(updates)), ScaleByBacktrackingLinesearchState(
            size, found, at_end, info
        )

    return GradientTransformationExtraArgs(init, update)
