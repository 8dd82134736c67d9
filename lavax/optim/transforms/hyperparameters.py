"""Hyperparameters as part of the state, so that they can be read and changed between steps without a new trace."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    with_extra_args_support,
)
from lavax.optim.tree.moments import increment
from lavax.tracer.values.value import Value


class InjectHyperparamsState(NamedTuple):
    """Steps done (int32), the hyperparameters of the last step by name, and the state within."""

    count: Any
    hyperparams: dict[str, Any]
    inner_state: Any


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """A factory like `inner_factory`, whose transformations keep their numbers in the state.

    `inject_hyperparams(optim.adam)(1e-3)` has a state with `state.hyperparams["learning_rate"]`, an array (float32
    unless `hyperparam_dtype` says otherwise) that may be replaced between steps. Functions are schedules: they are
    computed anew at each step. Arguments named in `static_args`, booleans, None and all else go to `inner_factory`
    unchanged. Raises ValueError for a static argument that `inner_factory` lacks.
    """
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    unknown = static - set(signature.parameters)
    if unknown:
        raise ValueError(f"inject_hyperparams: {inner_factory!r:.60} has no arguments {sorted(unknown)}")
    dtype = hyperparam_dtype or lnp.float32

    def as_array(value: Any) -> Any:
        array = lnp.asarray(value)
        is_number = isinstance(value, float) or lnp.issubdtype(array.dtype, lnp.floating)
        return lnp.astype(array, dtype) if is_number else array

    @wraps(inner_factory)
    def factory(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        schedules, numbers, others = _sorted_out(bound.arguments, static)

        def inner(hyperparams: dict[str, Any]) -> GradientTransformationExtraArgs:
            return with_extra_args_support(inner_factory(**others, **hyperparams))

        def scheduled(count: Any) -> dict[str, Any]:
            return {name: as_array(schedule(count)) for name, schedule in schedules.items()}

        def init(params: Any) -> InjectHyperparamsState:
            count = lnp.zeros((), lnp.int32)
            hyperparams = {name: as_array(value) for name, value in numbers.items()} | scheduled(count)
            return InjectHyperparamsState(count, hyperparams, inner(hyperparams).init(params))

        def update(updates: Any, state: InjectHyperparamsState, params: Any = None, **extra: Any) -> tuple[Any, Any]:
            held = {name: as_array(state.hyperparams[name]) for name in numbers} | scheduled(state.count)
            updates, following = inner(held).update(updates, state.inner_state, params, **extra)
            return updates, InjectHyperparamsState(increment(state.count), held, following)

        return GradientTransformationExtraArgs(init, update)

    return factory


def _sorted_out(arguments: dict[str, Any], static: set[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Arguments that are schedules, those that are numbers, and the others."""
    schedules, numbers, others = {}, {}, {}
    for name, value in arguments.items():
        if name in static or isinstance(value, bool):
            others[name] = value
        elif callable(value):
            schedules[name] = value
        elif isinstance(value, (int, float, np.ndarray, np.generic, Value)):
            numbers[name] = value
        else:
            others[name] = value
    return schedules, numbers, others
