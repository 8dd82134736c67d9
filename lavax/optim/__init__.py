"""Optimizers: gradient transformations in the convention of optax, over pytrees of float arrays."""
from lavax.optim import losses
from lavax.optim.transformations import (
    AdamState,
    Transformation,
    adam,
    adamw,
    apply_updates,
    chain,
    clip_by_global_norm,
    global_norm,
    sgd,
)

__all__ = [
    "AdamState",
    "Transformation",
    "adam",
    "adamw",
    "apply_updates",
    "chain",
    "clip_by_global_norm",
    "global_norm",
    "losses",
    "sgd",
]
