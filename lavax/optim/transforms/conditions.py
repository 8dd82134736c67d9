"""Transformations that are applied at some steps only; at the others, state and parameters stay bit for bit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)
from lavax.optim.tree.arithmetic import where
from lavax.optim.tree.joining import joined
from lavax.optim.tree.moments import increment
from lavax.optim.tree.precision import cast_like, wide_tree
from lavax.tracer.pytrees import pytree


class ApplyIfFiniteState(NamedTuple):
    """Steps refused in a row and in all (int32), whether the last one was finite, and the state within."""

    notfinite_count: Any
    last_finite: Any
    total_notfinite: Any
    inner_state: Any


class ConditionallyTransformState(NamedTuple):
    """The state within, and steps done (int32)."""

    inner_state: Any
    step: Any


class ConditionallyMaskState(NamedTuple):
    """Steps done (int32), and the state within."""

    step: Any
    inner_state: Any


def all_finite(tree: Any) -> Any:
    """Whether every number of `tree` is finite: a boolean array of rank 0."""
    found = [lnp.all(lnp.isfinite(leaf)) for leaf in joined([lnp.asarray(leaf) for leaf in pytree.leaves(tree)])]
    # In one reduction they do not wait for each other, as they would in a chain.
    return lnp.all(lnp.stack(found)) if found else lnp.asarray(True)


def apply_if_finite(inner: GradientTransformation, max_consecutive_errors: int) -> GradientTransformationExtraArgs:
    """Applies `inner` to finite updates; others give updates of zero and leave its state.

    After more than `max_consecutive_errors` refusals in a row, updates are let through as they are.
    """
    held = with_extra_args_support(inner)

    def init(params: Any) -> ApplyIfFiniteState:
        first, second = lnp.zeros((), lnp.int32), lnp.zeros((), lnp.int32)  # two arrays: each may be donated
        return ApplyIfFiniteState(first, lnp.asarray(True), second, held.init(params))

    def update(updates: Any, state: ApplyIfFiniteState, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        finite = all_finite(updates)
        refused = lnp.where(finite, 0, increment(state.notfinite_count))
        passes = finite | (refused > max_consecutive_errors)
        new, following = held.update(updates, state.inner_state, params, **extra)
        chosen = pytree.map(lambda u: lnp.where(passes, u, 0), new)
        in_all = lnp.where(finite, state.total_notfinite, increment(state.total_notfinite))
        kept = where(passes, cast_like(following, state.inner_state), state.inner_state)
        return chosen, ApplyIfFiniteState(refused, finite, in_all, kept)

    return GradientTransformationExtraArgs(init, update)


def conditionally_transform(
    inner: GradientTransformation, should_transform_fn: Callable[..., Any], forward_extra_args: bool = False
) -> GradientTransformationExtraArgs:
    """Applies `inner` where `should_transform_fn(step)` is true; else updates pass as they are, and its state stays.

    `forward_extra_args` hands the keyword arguments of `update` to `should_transform_fn` too.
    """
    held = with_extra_args_support(inner)

    def init(params: Any) -> ConditionallyTransformState:
        return ConditionallyTransformState(held.init(params), lnp.zeros((), lnp.int32))

    def update(updates: Any, state: ConditionallyTransformState, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        passes = should_transform_fn(state.step, **(extra if forward_extra_args else {}))
        new, following = held.update(updates, state.inner_state, params, **extra)
        kept = where(passes, following, state.inner_state)
        return where(passes, new, wide_tree(updates)), ConditionallyTransformState(kept, increment(state.step))

    return GradientTransformationExtraArgs(init, update)


def conditionally_mask(
    inner: GradientTransformation, should_transform_fn: Callable[..., Any], forward_extra_args: bool = False
) -> GradientTransformationExtraArgs:
    """Applies `inner` where `should_transform_fn(step)` is true; else updates are zero, and its state stays."""
    held = with_extra_args_support(inner)

    def init(params: Any) -> ConditionallyMaskState:
        return ConditionallyMaskState(lnp.zeros((), lnp.int32), held.init(params))

    def update(updates: Any, state: ConditionallyMaskState, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        passes = should_transform_fn(state.step, **(extra if forward_extra_args else {}))
        new, following = held.update(updates, state.inner_state, params, **extra)
        chosen = pytree.map(lambda u: lnp.where(passes, u, 0), new)
        return chosen, ConditionallyMaskState(increment(state.step), where(passes, following, state.inner_state))

    return GradientTransformationExtraArgs(init, update)
