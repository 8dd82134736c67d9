"""Random numbers for every leaf of a tree, by keys of their own."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.tracer.pytrees import pytree


def split_key_like(rng_key: Any, target_tree: Any) -> Any:
    """A tree of keys with the structure of `target_tree`: `rng_key`, split into as many as there are leaves."""
    leaves, structure = pytree.flatten(target_tree)
    return pytree.unflatten(structure, list(random.split(rng_key, len(leaves))))


def random_like(rng_key: Any, target_tree: Any, sampler: Callable[..., Any] = random.normal, dtype: Any = None) -> Any:
    """Draws with the shapes of the leaves of `target_tree`, by a key for each leaf.

    `sampler(key, shape, dtype)` is a distribution of lavax.random; `dtype` is that of the leaf by default.
    """
    return pytree.map(
        lambda leaf, key: sampler(key, lnp.shape(leaf), lnp.asarray(leaf).dtype if dtype is None else dtype),
        target_tree,
        split_key_like(rng_key, target_tree),
    )
