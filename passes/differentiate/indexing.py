"""Gradients of reads and writes at computed positions. The positions are integers and have no gradient."""
from __future__ import annotations

from functools import reduce

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    broadcast,
    cast,
    clamp,
    divide,
    equal,
    gather,
    greater_equal,
    index_type,
    iota,
    less,
    logical_and,
    maximum,
    multiply,
    reshape,
    scatter,
    scatter_add,
    splat,
    subtract,
    where,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule


def _gather(node: Node, g: Node, position: int) -> Node:
    """A gather clamps positions outside the range, so the element at the clamped position gets the gradient."""
    x, *indices = node.operands
    axes = node.attrs["axes"]
    if x.type.size == 0:
        return zeros(x.type)
    read = [clamp(index, 0, x.shape[axis] - 1) for index, axis in zip(indices, axes, strict=True)]
    return scatter_add(zeros(x.type), g, read, axes)


def _inside(node: Node) -> Node:
    """Whether each position is within the range; an update outside was dropped and has no gradient."""
    x, _, *indices = node.operands
    checks = []
    for index, axis in zip(indices, node.attrs["axes"], strict=True):
        checks.append(greater_equal(index, splat(0, index.type)))
        checks.append(less(index, splat(x.shape[axis], index.type)))
    return reduce(logical_and, checks)


def _read(node: Node, value: Node) -> Node:
    """The elements of `value`, typed like the result, at the updates' positions; zero for dropped updates."""
    indices = node.operands[2:]
    read = gather(value, indices, node.attrs["axes"])
    inside = _inside(node)
    return where(broadcast(inside, read.shape, range(inside.type.rank)), read, zeros(read.type))


def _like(node: Node, join: str, start: Node, updates: Node) -> Node:
    """A scatter at the same positions."""
    return scatter(join, start, updates, node.operands[2:], node.attrs["axes"])


def _scatter_add(node: Node, g: Node, position: int) -> Node:
    x, updates, *_ = node.operands
    if position == 0:
        return g
    return zeros(updates.type) if x.type.size == 0 else _read(node, g)


def _scatter_set(node: Node, g: Node, position: int) -> Node:
    """The last update of a position gets its gradient; if there is none, the original element does."""
    x, updates, *indices = node.operands
    axes, shape = node.attrs["axes"], indices[0].shape
    if x.type.size == 0 or updates.type.size == 0:
        return zeros(updates.type) if position else g
    numbers = reshape(iota(index_type((indices[0].type.size,)), 0), shape)
    positions = index_type([x.shape[axis] for axis in axes])
    last = scatter("maximum", splat(-1, positions), numbers, indices, range(len(axes)))
    if position == 0:
        unwritten = broadcast(less(last, zeros(positions)), x.shape, axes)
        return where(unwritten, g, zeros(x.type))
    is_last = logical_and(_inside(node), equal(gather(last, indices, range(len(axes))), numbers))
    read = gather(g, indices, axes)
    return where(broadcast(is_last, read.shape, range(len(shape))), read, zeros(read.type))


def _scatter_extremum(node: Node, g: Node, position: int) -> Node:
    """All elements and updates that equal the extremum share its gradient equally."""
    x, updates, *_ = node.operands
    if x.type.size == 0 or updates.type.size == 0:
        return zeros(updates.type) if position else g
    own = cast(equal(x, node), g.dtype)
    theirs = cast(equal(updates, gather(node, node.operands[2:], node.attrs["axes"])), g.dtype)
    share = divide(g, maximum(_like(node, "add", own, theirs), splat(1, g.type)))
    return multiply(own, share) if position == 0 else multiply(theirs, _read(node, share))


def _scatter_multiply(node: Node, g: Node, position: int) -> Node:
    """The gradient is the product of the other factors. Zeros are counted separately to avoid dividing by them."""
    x, updates, *indices = node.operands
    if x.type.size == 0 or updates.type.size == 0:
        return zeros(updates.type) if position else g
    if position == 0:
        return multiply(g, _like(node, "multiply", splat(1, x.type), updates))
    without_zeros = [where(equal(value, zeros(value.type)), splat(1, value.type), value) for value in (x, updates)]
    are_zero = [cast(equal(value, zeros(value.type)), g.dtype) for value in (x, updates)]
    axes = node.attrs["axes"]
    product = gather(_like(node, "multiply", *without_zeros), indices, axes)
    other_zeros = subtract(gather(_like(node, "add", *are_zero), indices, axes), are_zero[1])
    others = divide(product, without_zeros[1])
    kept = where(equal(other_zeros, zeros(others.type)), others, zeros(others.type))
    return multiply(_read(node, g), kept)


RULES: dict[str, GradientRule] = {
    "gather": _gather,
    "scatter_add": _scatter_add,
    "scatter_multiply": _scatter_multiply,
    "scatter_minimum": _scatter_extremum,
    "scatter_maximum": _scatter_extremum,
    "scatter_set": _scatter_set,
}
