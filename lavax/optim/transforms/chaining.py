"""Transformations one after the other."""
from __future__ import annotations

from typing import Any

from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    require_params,
    with_extra_args_support,
)


def chain(*transformations: GradientTransformation) -> GradientTransformationExtraArgs:
    """Transformations in sequence: each gets the updates of the previous one. Raises TypeError for anything else."""
    return sequence("chain", *transformations)


def sequence(
    name: str, *transformations: GradientTransformation, needs_params: bool = False
) -> GradientTransformationExtraArgs:
    """`chain`, with errors that speak of `name`; with `needs_params`, `update` refuses to go without parameters."""
    for transformation in transformations:
        if not (hasattr(transformation, "init") and hasattr(transformation, "update")):
            raise TypeError(f"{name} takes transformations such as optim.adam(1e-3), got {transformation!r:.80}")
    parts = [with_extra_args_support(transformation) for transformation in transformations]

    def init(params: Any) -> tuple[Any, ...]:
        return tuple(part.init(params) for part in parts)

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, tuple[Any, ...]]:
        if not isinstance(state, tuple) or len(state) != len(parts):
            what = f"a tuple of {len(parts)} states"
            raise TypeError(f"{name}: the state must come from init or the last update, {what}, got {state!r:.80}")
        if needs_params:
            require_params(name, params)
        following = []
        for part, held in zip(parts, state, strict=True):
            updates, held = part.update(updates, held, params, **extra_args)
            following.append(held)
        return updates, tuple(following)

    return GradientTransformationExtraArgs(init, update)


def named_chain(*parts: tuple[str, GradientTransformation]) -> GradientTransformationExtraArgs:
    """`chain` of `(name, transformation)` pairs, whose state is a dict by these names.

    Raises ValueError for a name that occurs twice.
    """
    names = [name for name, _ in parts]
    if len(set(names)) != len(names):
        raise ValueError(f"named_chain: names must differ, got {names}")
    whole = sequence("named_chain", *(transformation for _, transformation in parts))

    def init(params: Any) -> dict[str, Any]:
        return dict(zip(names, whole.init(params), strict=True))

    def update(updates: Any, state: dict[str, Any], params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        held = tuple(state[name] for name in names)
        updates, following = whole.update(updates, held, params, **extra_args)
        return updates, dict(zip(names, following, strict=True))

    return GradientTransformationExtraArgs(init, update)
