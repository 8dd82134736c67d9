"""Updates without NaN, and parameters that stay at or above zero."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformation, empty_state, require_params
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree


class ZeroNansState(NamedTuple):
    """For each array, whether the last update held a NaN (boolean, rank 0)."""

    found_nan: Any


def zero_nans() -> GradientTransformation:
    """Zero for every NaN in the updates."""

    def init(params: Any) -> ZeroNansState:
        return ZeroNansState(pytree.map(lambda p: lnp.asarray(False), params))

    def update(updates: Any, state: ZeroNansState, params: Any = None) -> tuple[Any, ZeroNansState]:
        found = pytree.map(lambda u: lnp.any(lnp.isnan(u)), updates)
        return pytree.map(lambda u: lnp.where(lnp.isnan(u), 0, u), updates), ZeroNansState(found)

    return GradientTransformation(init, update)


def keep_params_nonnegative() -> GradientTransformation:
    """Updates that take parameters to zero at least. To be chained last."""

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        require_params("keep_params_nonnegative", params)

        def bounded(u: Any, p: Any) -> Any:
            return lnp.where(wide(p) + wide(u) < 0, -wide(p), wide(u))

        return pytree.map(bounded, updates, params), state

    return GradientTransformation(empty_state, update)
