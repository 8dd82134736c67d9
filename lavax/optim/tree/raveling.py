"""Pytrees as vectors."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import as_value
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.values.value import Value

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Value, Callable[[Any], Any]]:
    """The numbers of all leaves as one vector [n], and the function that makes such a tree of a vector.

    The vector has the dtype that the leaves promote to together; the tree's leaves get their own dtypes back. A tree
    without leaves is an empty float32 vector. The function raises ShapeError for another number of elements.
    """
    leaves, treedef = flatten(pytree)
    if not leaves:
        return lnp.zeros(0), lambda vector: unflatten(treedef, ())
    values = [as_value(leaf) for leaf in leaves]
    shapes, dtypes = [value.shape for value in values], [value.dtype for value in values]
    ends = list(itertools.accumulate(prod(shape) for shape in shapes))
    dtype = lnp.result_type(*dtypes)  # Python's numbers count as arrays: the vector has to hold them
    vector = lnp.concatenate([lnp.astype(lnp.ravel(value), dtype) for value in values])

    def unravel(vector: Any) -> Any:
        given = as_value(vector)
        if given.shape != (ends[-1],):
            raise shape_error(f"unravel: the tree needs a vector of {ends[-1]} elements, got {given.type}")
        parts = [
            lnp.astype(lnp.reshape(given[start:end], shape), own)
            for start, end, shape, own in zip([0, *ends], ends, shapes, dtypes, strict=False)
        ]
        return unflatten(treedef, parts)

    return vector, unravel
