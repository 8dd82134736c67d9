"""Norms of trees of arrays, each taken as one vector; sums are in float32 at least."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.optim.tree.arithmetic import total
from lavax.optim.tree.joining import joined
from lavax.optim.tree.precision import squared_size, wide
from lavax.tracer.pytrees import pytree

_ORDERS = {None: 2, 1: 1, 2: 2, math.inf: math.inf, "inf": math.inf, "infinity": math.inf}


def norm(tree: Any, ord: int | float | str | None = None, squared: bool = False) -> Any:
    """The 1-, 2- (default) or infinity norm of all numbers of `tree` together, or its square: an array of rank 0.

    Raises ValueError for another order.
    """
    if ord not in _ORDERS:
        raise ValueError(f"norm: ord must be 1, 2 or inf, got {ord!r}")
    order, leaves = _ORDERS[ord], joined([wide(leaf) for leaf in pytree.leaves(tree)])
    if order == 2:
        squares = total(lnp.sum(squared_size(leaf)) for leaf in leaves)
        return squares if squared else lnp.sqrt(squares)
    if order == 1:
        found = total(lnp.sum(lnp.abs(leaf)) for leaf in leaves)
    else:
        found = lnp.max(lnp.stack([lnp.max(lnp.abs(leaf)) for leaf in leaves])) if leaves else lnp.zeros(())
    return lnp.square(found) if squared else found


def global_norm(tree: Any) -> Any:
    """The Euclidean norm of all numbers of a tree together."""
    return norm(tree)
