"""What is added to updates: parts of the parameters, and noise."""
from __future__ import annotations

from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax import random
from lavax.optim.transforms.masking import masked
from lavax.optim.transforms.transformation import EmptyState, GradientTransformation, require_params
from lavax.optim.tree.leafwise import leafwise
from lavax.optim.tree.moments import increment
from lavax.optim.tree.precision import wide, wide_dtype
from lavax.tracer.pytrees import pytree


class WeightDecaySchedule(NamedTuple):
    """Steps done (int32)."""

    count: Any


class AddNoiseState(NamedTuple):
    """Steps done (int32), and the key of the noise to come."""

    count: Any
    rng_key: Any


def add_decayed_weights(weight_decay: Any = 0.0, mask: Any = None) -> GradientTransformation:
    """Updates plus `weight_decay` (a number, an array or a schedule of the steps done) times the parameters.

    `mask`, a tree of booleans or a function from parameters to one, says which parameters decay.
    """
    scheduled = callable(weight_decay)

    def init(params: Any) -> Any:
        return WeightDecaySchedule(lnp.zeros((), lnp.int32)) if scheduled else EmptyState()

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if isinstance(weight_decay, (int, float)) and weight_decay == 0:
            return updates, state
        require_params("add_decayed_weights", params)
        share = weight_decay(state.count) if scheduled else weight_decay
        following = WeightDecaySchedule(increment(state.count)) if scheduled else state
        return leafwise(lambda u, p: wide(u) + share * wide(p), updates, params), following

    decay = GradientTransformation(init, update)
    return decay if mask is None else masked(decay, mask)


def add_noise(eta: Any, gamma: Any, key: Any = 0) -> GradientTransformation:
    """Updates plus normal noise of variance eta / t^gamma at step t (Neelakantan et al. 2015).

    `key` is a key of `lx.random`, or an integer seed.
    """

    def init(params: Any) -> AddNoiseState:
        start = random.key(key) if isinstance(key, int) else key
        return AddNoiseState(lnp.zeros((), lnp.int32), start)

    def update(updates: Any, state: AddNoiseState, params: Any = None) -> tuple[Any, AddNoiseState]:
        count = increment(state.count)
        deviation = lnp.sqrt(eta / count.astype(lnp.float32) ** gamma)
        following, now = random.split(state.rng_key)
        leaves, structure = pytree.flatten(updates)
        keys = random.split(now, len(leaves))
        noisy = [
            wide(leaf) + deviation * random.normal(keys[position], lnp.shape(leaf), wide_dtype(leaf))
            for position, leaf in enumerate(leaves)
        ]
        return pytree.unflatten(structure, noisy), AddNoiseState(count, following)

    return GradientTransformation(init, update)
