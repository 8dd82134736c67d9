"""L-BFGS: an approximate inverse Hessian from the last steps (Nocedal and Wright 2006, algorithm 7.4)."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.line_search.zoom import scale_by_zoom_linesearch
from lavax.optim.transforms.chaining import sequence
from lavax.optim.transforms.scaling import scale, scale_by_learning_rate
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    identity,
    require_params,
)
from lavax.optim.tree.arithmetic import add_scale, real_vdot, sub
from lavax.optim.tree.moments import increment
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import wide_dtype, wide_tree, zeros_like
from lavax.tracer.control_flow.scan import scan
from lavax.tracer.pytrees import pytree

_STANDARD = object()


class ScaleByLBFGSState(NamedTuple):
    """Steps done (int32), the last parameters and gradients, and the last differences of both, [memory, ...].

    `weights_memory`, [memory], holds one over the inner product of each pair of differences.
    """

    count: Any
    params: Any
    updates: Any
    diff_params_memory: Any
    diff_updates_memory: Any
    weights_memory: Any


def scale_by_lbfgs(memory_size: int = 10, scale_init_precond: bool = True) -> GradientTransformation:
    """Gradients times the approximate inverse Hessian of the last `memory_size` steps.

    It starts from a multiple of the identity: with `scale_init_precond` that of Nocedal and Wright's equation 7.20 (at
    the first step, one over the gradient's norm, at most 1), else 1. Raises ValueError for no memory.
    """
    if memory_size < 1:
        raise ValueError(f"scale_by_lbfgs: memory_size must be at least 1, got {memory_size}")

    def init(params: Any) -> ScaleByLBFGSState:
        def memory() -> Any:
            return pytree.map(lambda leaf: lnp.zeros((memory_size, *lnp.shape(leaf)), wide_dtype(leaf)), params)

        none = lnp.zeros((), lnp.int32)
        return ScaleByLBFGSState(
            none, zeros_like(params), zeros_like(params), memory(), memory(), lnp.zeros(memory_size)
        )

    def remembered(state: ScaleByLBFGSState, params: Any, updates: Any) -> tuple[Any, Any, Any, Any]:
        """The three memories with the last step in its place, and the first multiple of the identity."""
        begun = state.count > 0
        step, change = (
            pytree.map(lambda leaf: lnp.where(begun, leaf, 0), difference)
            for difference in (sub(params, state.params), sub(updates, state.updates))
        )
        product = real_vdot(change, step)
        weight = lnp.where(product == 0, 0, 1 / lnp.where(product == 0, 1, product))
        place = (state.count - 1) % memory_size

        def put(memory: Any, new: Any) -> Any:
            return memory.at[place].set(new)

        steps = pytree.map(put, state.diff_params_memory, step)
        changes = pytree.map(put, state.diff_updates_memory, change)
        multiple: Any = lnp.ones(())
        if scale_init_precond:
            square = norm(change, squared=True)
            multiple = lnp.where(square > 0, product / lnp.where(square > 0, square, 1), 1)
            length = norm(updates)
            multiple = lnp.where(begun, multiple, 1 / lnp.maximum(length, 1))
        return steps, changes, put(state.weights_memory, weight), multiple

    def update(updates: Any, state: ScaleByLBFGSState, params: Any = None) -> tuple[Any, ScaleByLBFGSState]:
        require_params("scale_by_lbfgs", params)
        steps, changes, weights, multiple = remembered(state, params, updates)
        oldest_first = (state.count + lnp.arange(memory_size)) % memory_size
        direction = _preconditioned(wide_tree(updates), steps, changes, weights, multiple, oldest_first)
        following = ScaleByLBFGSState(
            increment(state.count), wide_tree(params), wide_tree(updates), steps, changes, weights
        )
        return direction, following

    return GradientTransformation(init, update)


def _preconditioned(vector: Any, steps: Any, changes: Any, weights: Any, multiple: Any, order: Any) -> Any:
    """The two loops of algorithm 7.4: from the newest pair to the oldest, and back."""

    def pair(place: Any) -> tuple[Any, Any]:
        return pytree.map(lambda leaf: leaf[place], steps), pytree.map(lambda leaf: leaf[place], changes)

    def right(held: Any, place: Any) -> tuple[Any, Any]:
        step, change = pair(place)
        alpha = weights[place] * real_vdot(step, held)
        return add_scale(held, -alpha, change), alpha

    def left(held: Any, of_pair: Any) -> tuple[Any, None]:
        place, alpha = of_pair
        step, change = pair(place)
        beta = weights[place] * real_vdot(change, held)
        return add_scale(held, alpha - beta, step), None

    found, alphas = scan(right, vector, order, reverse=True)
    found = pytree.map(lambda leaf: multiple * leaf, found)
    return scan(left, found, (order, alphas))[0]


def lbfgs(
    learning_rate: Any = None, memory_size: int = 10, scale_init_precond: bool = True, linesearch: Any = _STANDARD
) -> GradientTransformationExtraArgs:
    """L-BFGS with a line search: by zooming unless `linesearch` is another transformation, or None for none.

    `update` needs the parameters and, for the search, `value=`, `grad=` and `value_fn=`: the loss, its gradient, and
    the loss as a function of the parameters (see `value_and_grad_from_state`, and `minimize` for all in one).
    """
    search = scale_by_zoom_linesearch(20, initial_guess_strategy="one") if linesearch is _STANDARD else linesearch
    return sequence(
        "lbfgs",
        scale_by_lbfgs(memory_size, scale_init_precond),
        scale(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate),
        identity() if search is None else search,
        needs_params=True,
    )
