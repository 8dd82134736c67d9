"""Small arrays as one, so that what reduces all arrays of a tree takes few kernels."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp

# Elements of the largest array that is joined to others. Copies of these cost less than a kernel each; on lavapipe, the
# global norm of 60 layers with two vectors each takes 1.5 times less time so, and larger bounds take longer.
MOST_ELEMENTS = 2048


def joined(arrays: Sequence[Any]) -> list[Any]:
    """The numbers of `arrays`: small arrays of one dtype as one vector, the others as they are; empty ones left out."""
    found: list[Any] = []
    small: dict[str, list[Any]] = {}
    for array in arrays:
        if lnp.size(array) > MOST_ELEMENTS:
            found.append(array)
        elif lnp.size(array):
            small.setdefault(str(array.dtype), []).append(lnp.reshape(array, (-1,)))
    return [*found, *(vectors[0] if len(vectors) == 1 else lnp.concatenate(vectors) for vectors in small.values())]
