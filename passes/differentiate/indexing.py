"""Gradients of reads and writes at computed positions. The positions themselves are integers and have none."""
from __future__ import annotations

from functools import reduce

from lavax.ir.graph import Node
from lavax.passes.builder import (
    broadcast,
    clamp,
    gather,
    greater_equal,
    less,
    logical_and,
    scatter_add,
    splat,
    where,
    zeros,
)
from lavax.passes.differentiate.rule import Rule


def _gather(node: Node, g: Node, position: int) -> Node:
    """A gather reads the nearest element for a position outside the range, so that element gets the gradient."""
    x, *indices = node.operands
    axes = node.attrs["axes"]
    if x.type.size == 0:
        return zeros(x.type)
    read = [clamp(index, 0, x.shape[axis] - 1) for index, axis in zip(indices, axes, strict=True)]
    return scatter_add(zeros(x.type), g, read, axes)


def _scatter_add(node: Node, g: Node, position: int) -> Node:
    """An update outside the range was dropped: its gradient is zero."""
    x, updates, *indices = node.operands
    axes = node.attrs["axes"]
    if position == 0:
        return g
    if x.type.size == 0:
        return zeros(updates.type)
    checks = []
    for index, axis in zip(indices, axes, strict=True):
        checks.append(greater_equal(index, splat(0, index.type)))
        checks.append(less(index, splat(x.shape[axis], index.type)))
    inside = reduce(logical_and, checks)
    read = gather(g, indices, axes)
    return where(broadcast(inside, read.shape, range(inside.type.rank)), read, zeros(read.type))


RULES: dict[str, Rule] = {"gather": _gather, "scatter_add": _scatter_add}
