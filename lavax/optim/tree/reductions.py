"""The sum and the extremes of all numbers of a tree, taken as one vector, and whether two trees are close."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.optim.tree.arithmetic import total
from lavax.optim.tree.precision import wide
from lavax.tracer.pytrees import pytree


def sum(tree: Any) -> Any:
    """The sum of all numbers of a tree: an array of rank 0."""
    return total(lnp.sum(wide(leaf)) for leaf in pytree.leaves(tree))


def max(tree: Any) -> Any:
    """The greatest number of a tree. Raises ValueError if there is none."""
    return lnp.max(lnp.stack([lnp.max(leaf) for leaf in _numbers("max", tree)]))


def min(tree: Any) -> Any:
    """The least number of a tree. Raises ValueError if there is none."""
    return lnp.min(lnp.stack([lnp.min(leaf) for leaf in _numbers("min", tree)]))


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol·|b| for all numbers of two trees of one structure: a boolean of rank 0."""
    close = pytree.map(lambda x, y: lnp.allclose(x, y, rtol, atol, equal_nan), a, b)
    return lnp.all(lnp.asarray([True, *pytree.leaves(close)]))


def _numbers(name: str, tree: Any) -> list[Any]:
    found = [wide(leaf) for leaf in pytree.leaves(tree) if lnp.size(leaf)]
    if not found:
        raise ValueError(f"{name}: the tree has no numbers")
    return found
