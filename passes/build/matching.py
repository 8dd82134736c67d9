"""Predicates on nodes and shapes that rules share."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from lavax.ir.graph import Node


def is_splat(node: Node) -> bool:
    return node.op == "constant"


def is_value(node: Node, value: float | bool) -> bool:
    """Whether every element is known to be `value` (0.0 and -0.0 are equal)."""
    return node.op == "constant" and bool(node.attrs["value"] == value)


def splat_value(node: Node) -> Any:
    return node.attrs["value"]


def without_units(shape: Sequence[int]) -> tuple[int, ...]:
    """The extents other than 1."""
    return tuple(extent for extent in shape if extent != 1)


def is_unit_reshape(node: Node) -> bool:
    """Whether the node only inserts or removes axes of extent 1."""
    return node.op == "reshape" and without_units(node.shape) == without_units(node.operands[0].shape)


def unit_map(source: Sequence[int], target: Sequence[int]) -> dict[int, int]:
    """Axis of `source` -> axis of `target`, without axes of extent 1; the shapes differ only in those."""
    of_source = (axis for axis, extent in enumerate(source) if extent != 1)
    of_target = (axis for axis, extent in enumerate(target) if extent != 1)
    return dict(zip(of_source, of_target, strict=True))


def axis_groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of consecutive axes that a reshape maps to one another, without axes of extent 1.

    [4,5,3] -> [20,3] gives ([0,1], [0]) and ([2], [1]). Both shapes have the same number of elements, at least 1.
    """
    of_source = [axis for axis, extent in enumerate(source) if extent != 1]
    of_target = [axis for axis, extent in enumerate(target) if extent != 1]
    groups = []
    while of_source:
        left, right = [of_source.pop(0)], [of_target.pop(0)]
        left_size, right_size = source[left[0]], target[right[0]]
        while left_size != right_size:
            if left_size < right_size:
                left.append(of_source.pop(0))
                left_size *= source[left[-1]]
            else:
                right.append(of_target.pop(0))
                right_size *= target[right[-1]]
        groups.append((left, right))
    return groups


def other_axes(rank: int, axes: Sequence[int]) -> list[int]:
    return [axis for axis in range(rank) if axis not in axes]


@lru_cache(maxsize=1)  # asked for each of its parts, one after the other
def ends_of_parts(concatenate: Node) -> tuple[int, ...]:
    """Where each operand of a concatenate ends along its axis."""
    axis = concatenate.attrs["axis"]
    return tuple(accumulate(part.shape[axis] for part in concatenate.operands))
