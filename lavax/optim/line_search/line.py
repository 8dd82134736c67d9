"""A loss along a line from the parameters, and the errors by which line searches judge a step."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import lavax.numpy as lnp
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree


def bound_loss(name: str, value_fn: Callable[..., Any], extra_args: dict[str, Any]) -> Callable[[Any], Any]:
    """`value_fn` of the parameters alone, with `extra_args` given by keyword. Raises TypeError for others."""
    parameters = inspect.signature(value_fn).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    unknown = [] if takes_all else sorted(set(extra_args) - set(parameters))
    if unknown:
        raise TypeError(f"{name}: value_fn takes no arguments {unknown}, which update got by keyword")
    return partial(value_fn, **extra_args)


def no_value() -> Any:
    """What stands for a loss or an error before the first step. Each is an array of its own, which may be donated."""
    return lnp.asarray(lnp.inf, lnp.float32)


def point_on_line(params: Any, size: Any, direction: Any) -> Any:
    """params + size · direction, in the dtypes of the parameters."""
    return pytree.map(
        lambda p, d: lnp.astype(wide(p) + size * wide(d), lnp.asarray(p).dtype), params, direction
    )


def violation(error: Any) -> Any:
    """`error` where it is positive, 0 where it is not, infinity where it is NaN."""
    return lnp.where(lnp.isnan(error), lnp.inf, lnp.maximum(error, 0))


def number(value: Any) -> Any:
    """A loss as float32 (or float64), rank 0."""
    return wide(value)
