"""Updates put into effect; parameters keep their dtypes."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.optim.tree.arithmetic import where
from lavax.optim.tree.leafwise import leafwise
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree


def apply_updates(params: Any, updates: Any) -> Any:
    """The sum of two trees of the same structure, added in float32 at least and rounded to the parameter's dtype."""
    return leafwise(lambda p, u: (wide(p) + wide(u)).astype(lnp.asarray(p).dtype), params, updates)


def incremental_update(new_tensors: Any, old_tensors: Any, step_size: Any) -> Any:
    """step_size · new + (1 - step_size) · old, in the dtypes of `old_tensors` (Polyak and Juditsky 1992).

    With the parameters as `new_tensors` and their mean as `old_tensors`, the next mean.
    """

    def mixed(new: Any, old: Any) -> Any:
        return (step_size * wide(new) + (1 - step_size) * wide(old)).astype(lnp.asarray(old).dtype)

    return pytree.map(mixed, new_tensors, old_tensors)


def periodic_update(new_tensors: Any, old_tensors: Any, steps: Any, update_period: Any) -> Any:
    """`new_tensors` where `steps` is a multiple of `update_period`, else `old_tensors` (Mnih et al. 2015)."""
    return where(steps % update_period == 0, new_tensors, old_tensors)
