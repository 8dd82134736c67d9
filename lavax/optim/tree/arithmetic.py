"""Arithmetic with trees of arrays as if they were vectors; everything is computed in float32 at least."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.optim.tree.precision import conj, wide
from lavax.tracer.pytrees import pytree


def add(tree_x: Any, tree_y: Any, *other_trees: Any) -> Any:
    """The sum of trees of one structure."""
    return pytree.map(lambda *leaves: sum(map(wide, leaves)), tree_x, tree_y, *other_trees)


def sub(tree_x: Any, tree_y: Any) -> Any:
    """`tree_x - tree_y`."""
    return pytree.map(lambda x, y: wide(x) - wide(y), tree_x, tree_y)


def mul(tree_x: Any, tree_y: Any) -> Any:
    """The product, element by element."""
    return pytree.map(lambda x, y: wide(x) * wide(y), tree_x, tree_y)


def div(tree_x: Any, tree_y: Any) -> Any:
    """The quotient, element by element."""
    return pytree.map(lambda x, y: wide(x) / wide(y), tree_x, tree_y)


def scale(scalar: Any, tree: Any) -> Any:
    """`scalar * tree`."""
    return pytree.map(lambda x: scalar * wide(x), tree)


def add_scale(tree_x: Any, scalar: Any, tree_y: Any) -> Any:
    """`tree_x + scalar * tree_y`."""
    return pytree.map(lambda x, y: wide(x) + scalar * wide(y), tree_x, tree_y)


def where(condition: Any, tree_x: Any, tree_y: Any) -> Any:
    """`tree_x` where `condition`, a boolean array or scalar, is True, elsewhere `tree_y`."""
    return pytree.map(lambda x, y: lnp.where(condition, x, y), tree_x, tree_y)


def clip(tree: Any, min_value: Any = None, max_value: Any = None) -> Any:
    """Every element clipped to the two bounds."""
    return pytree.map(lambda x: lnp.clip(x, min_value, max_value), tree)


def size(tree: Any) -> int:
    """How many numbers `tree` holds."""
    return sum(math.prod(lnp.shape(leaf)) for leaf in pytree.leaves(tree))


def vdot(tree_x: Any, tree_y: Any) -> Any:
    """The inner product of two trees as vectors: an array of rank 0. Complex leaves of `tree_x` are conjugated."""
    products = mul(conj(tree_x), tree_y)
    return total(lnp.sum(leaf) for leaf in pytree.leaves(products))


def real_vdot(tree_x: Any, tree_y: Any) -> Any:
    """The inner product of two trees as vectors of real numbers, where a complex number is two: an array of rank 0."""

    def product(x: Any, y: Any) -> Any:
        x, y = wide(x), wide(y)
        return x.real * y.real + x.imag * y.imag if lnp.iscomplexobj(x) or lnp.iscomplexobj(y) else x * y

    return total(lnp.sum(leaf) for leaf in pytree.leaves(pytree.map(product, tree_x, tree_y)))


def total(numbers: Any) -> Any:
    """The sum of arrays of rank 0; float32 zero if there is none."""
    found = list(numbers)
    # In one sum they do not wait for each other, as they would in a chain of additions.
    return lnp.sum(lnp.stack(found)) if found else lnp.zeros(())
