"""What a program gives, as arrays with names, and in few numbers."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.lavax.lax.comparing import weights_of

_WHOLE = 8  # elements of arrays that are recorded one by one; of larger ones, weighted sums are


def arrays_of(results: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The leaves of the results, by their places; 16-bit floats as float32, so that any NumPy takes them."""
    return dict(_leaves("", results))


def _leaves(place: str, tree: Any) -> list[tuple[str, np.ndarray]]:
    if isinstance(tree, Mapping):
        return [leaf for key in sorted(tree) for leaf in _leaves(f"{place}.{key}" if place else str(key), tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for number, part in enumerate(tree) for leaf in _leaves(f"{place}.{number}", part)]
    array = np.asarray(tree)
    return [(place, array if array.dtype.kind in "fiub" and array.dtype.itemsize > 2 else _as_known(array))]


def _as_known(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind in "iub" else array.astype(np.float32)


def in_few_numbers(array: np.ndarray, digits: int = 7) -> list[float]:
    """The elements, or of larger arrays three sums in which all elements count; of NaNs and infinities, the count."""
    numbers = array.astype(np.float64)
    finite = np.isfinite(numbers)
    if numbers.size <= _WHOLE and finite.all():
        return [float(f"{number:.{digits}g}") for number in numbers.ravel()]
    known = np.where(finite, numbers, 0.0)
    return [float(f"{np.sum(known * weights_of(known, k)):.{digits}g}") for k in range(3)] + [float(np.sum(~finite))]


def size_of(array: np.ndarray) -> float:
    """What errors are compared with: the largest, times the root of the number of elements where sums are compared."""
    largest = float(np.abs(np.where(np.isfinite(array), array, 0).astype(np.float64)).max(initial=0))
    return max(1e-3, largest if array.size <= _WHOLE else float(np.sqrt(array.size)) * largest)
