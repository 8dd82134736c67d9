"""JAX's dtype of derivatives by integers, which do not change by small amounts: its elements have no size."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.pytrees.pytree import NodeKind, TreeDef, flatten, register, unflatten

float0 = np.dtype([("float0", np.void, 0)])


def zeros(shape: Sequence[int]) -> np.ndarray:
    """The derivative by integers: an array of NumPy's, without numbers."""
    return np.zeros(tuple(shape), float0)


def is_float0(part: Any) -> bool:
    """Whether it is an array of elements without size."""
    return isinstance(part, np.ndarray) and part.dtype.itemsize == 0 and part.dtype.kind == "V"


@dataclass(frozen=True)
class _Float0:
    """Stands in a result for an array of float0: a container of nothing, so that the structure has its shape."""

    shape: tuple[int, ...]


register(
    _Float0,
    NodeKind(
        "float0", lambda mark: ((), mark.shape), lambda shape, children: zeros(shape), lambda data, count: (), _Float0,
        is_one_leaf=True,
    ),
)  # fmt: skip


def flatten_result(result: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a function's result, and its structure, of which arrays of float0 are part."""
    leaves, structure = flatten(result)
    if not any(is_float0(leaf) for leaf in leaves):
        return leaves, structure
    return flatten(unflatten(structure, [_Float0(leaf.shape) if is_float0(leaf) else leaf for leaf in leaves]))


def parted_from_float0(call: CallStructure, leaves: list[Any]) -> tuple[CallStructure, list[Any]]:
    """A call's structure, of which arrays of float0 among its arguments become part, and its other leaves."""
    if not any(is_float0(leaf) for leaf in leaves):
        return call, leaves
    count = call.positional.leaf_count
    remaining, positional = flatten_result(unflatten(call.positional, leaves[:count]))
    if call.keywords is None:
        return CallStructure(positional, None, call.statics), remaining
    more, keywords = flatten_result(unflatten(call.keywords, leaves[count:]))
    return CallStructure(positional, keywords, call.statics), remaining + more


def with_float0_of_each(
    result: Any, structure: TreeDef, size: int, axes_of: Callable[[TreeDef], Sequence[int | None]] | None = None
) -> Any:
    """The result, of that structure, of a function of one element for `size` of them, with as many arrays of float0.

    `axes_of` says along which axis they lie, for each leaf of a structure that has these arrays as leaves; None for
    one array of all. By default it is the first axis.
    """
    if not structure.holds_keys:
        return result
    leaves, whole = flatten(result)
    axes = [0] * len(leaves) if axes_of is None else axes_of(whole)
    return unflatten(whole, [_of_each(leaf, axis, size) for leaf, axis in zip(leaves, axes, strict=True)])


def _of_each(leaf: Any, axis: int | None, size: int) -> Any:
    if axis is None or not is_float0(leaf):
        return leaf
    shape = list(leaf.shape)
    shape.insert(range(leaf.ndim + 1)[axis], size)
    return zeros(shape)
