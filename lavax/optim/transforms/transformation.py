"""What a gradient transformation is, and the simplest ones."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.tracer.pytrees import pytree


class GradientTransformation(NamedTuple):
    """Turns gradients into updates: `init(params) -> state`, `update(updates, state, params) -> (updates, state)`."""

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class GradientTransformationExtraArgs(GradientTransformation):
    """One whose `update` also takes further arguments by keyword, such as `value` and `value_fn`."""


class EmptyState(NamedTuple):
    """The state of a transformation that keeps nothing."""


def empty_state(params: Any) -> EmptyState:
    """The `init` of a transformation that keeps nothing."""
    return EmptyState()


def identity() -> GradientTransformation:
    """Leaves updates as they are."""
    return GradientTransformation(empty_state, lambda updates, state, params=None: (updates, state))


def set_to_zero() -> GradientTransformation:
    """Updates of zero: nothing moves."""
    return stateless(lambda updates, params: pytree.map(lnp.zeros_like, updates))


def stateless(function: Callable[[Any, Any], Any]) -> GradientTransformation:
    """The transformation whose updates are `function(updates, params)`; `params` is None where none are given."""
    return GradientTransformation(
        empty_state, lambda updates, state, params=None: (function(updates, params), state)
    )


def stateless_with_tree_map(function: Callable[[Any, Any], Any]) -> GradientTransformation:
    """The same for a function of one update and its parameter, an array each (or None for the latter)."""

    def apply(updates: Any, params: Any) -> Any:
        if params is None:
            return pytree.map(lambda update: function(update, None), updates)
        return pytree.map(function, updates, params)

    return stateless(apply)


def with_extra_args_support(transformation: Any) -> GradientTransformationExtraArgs:
    """The same transformation; if its `update` takes no further arguments by keyword, it now ignores them."""
    if isinstance(transformation, GradientTransformationExtraArgs):
        return transformation

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        return transformation.update(updates, state, params)  # type: ignore[no-any-return]

    return GradientTransformationExtraArgs(transformation.init, update)


def require_params(name: str, params: Any) -> None:
    """Raises TypeError if `params`, which the transformation `name` needs, were not given."""
    if params is None:
        raise TypeError(f"{name}: parameters are missing, and update needs them: update(gradients, state, params)")
