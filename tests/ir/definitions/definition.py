"""What a definition is: an element of the result, in plain Python."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from lavax.ir import TensorType

Place = tuple[int, ...]
# element(arrays, attributes, type, place): the element of the result at `place`.
Definition = Callable[[Sequence[np.ndarray], Mapping[str, Any], TensorType, Place], Any]


def places(shape: Sequence[int]) -> Iterator[Place]:
    return product(*map(range, shape))
