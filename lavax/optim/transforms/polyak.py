"""Polyak's step size, from the loss itself."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.optim.transforms.transformation import GradientTransformationExtraArgs, empty_state
from lavax.optim.tree.norms import norm
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree

VARIANTS = ("sps", "sps+")


def scale_by_polyak(
    f_min: Any = 0.0, max_learning_rate: Any = 1.0, eps: Any = 0.0, variant: str = "sps"
) -> GradientTransformationExtraArgs:
    """Updates times (value - f_min) / (‖updates‖² + eps), at most `max_learning_rate` (Loizou et al. 2021).

    `update` needs the loss as `value=`. The variant "sps+" takes 0 where the loss is below `f_min`. Raises ValueError
    for another variant.
    """
    if variant not in VARIANTS:
        raise ValueError(f"scale_by_polyak: variant must be one of {', '.join(VARIANTS)}, got {variant!r}")

    def update(updates: Any, state: Any, params: Any = None, *, value: Any, **extra_args: Any) -> tuple[Any, Any]:
        square = norm(updates, squared=True) + eps
        gap = wide(value) - f_min
        gap = lnp.maximum(gap, 0) if variant == "sps+" else gap
        is_flat = square <= float(lnp.finfo(lnp.float32).eps)
        step = lnp.where(is_flat, 0, lnp.minimum(gap / lnp.where(is_flat, 1, square), max_learning_rate))
        return pytree.map(lambda u: step * wide(u), updates), state

    return GradientTransformationExtraArgs(empty_state, update)
