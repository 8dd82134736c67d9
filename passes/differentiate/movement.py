"""Gradients of movement: each rule inverts it, and sums the elements that it repeated."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import flip, pad, reshape, slice_, slice_along, sum_over, transpose, zeros
from lavax.passes.build.matching import ends_of_parts
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand


def _reshape(node: Node, g: Node) -> Node:
    return reshape(g, node.operands[0].shape)


def _transpose(node: Node, g: Node) -> Node:
    axes = node.attrs["axes"]
    return transpose(g, sorted(range(len(axes)), key=axes.__getitem__))


def _broadcast(node: Node, g: Node) -> Node:
    (x,) = node.operands
    own = {axis for axis, extent in zip(node.attrs["axes"], x.shape, strict=True) if extent == node.shape[axis]}
    summed = sum_over(g, [axis for axis in range(g.type.rank) if axis not in own])
    return reshape(summed, x.shape)


def _slice(node: Node, g: Node) -> Node:
    (x,) = node.operands
    if g.type.size == 0:
        return zeros(x.type)
    start, stride = node.attrs["start"], node.attrs["stride"]
    high = [
        extent - (first + (taken - 1) * step + 1)
        for extent, first, taken, step in zip(x.shape, start, g.shape, stride, strict=True)
    ]
    return pad(g, start, high, [step - 1 for step in stride], g.dtype.number(0))


def _pad(node: Node, g: Node) -> Node:
    (x,) = node.operands
    if x.type.size == 0:
        return zeros(x.type)
    low, stride = node.attrs["low"], [between + 1 for between in node.attrs["interior"]]
    limit = [first + (extent - 1) * step + 1 for first, extent, step in zip(low, x.shape, stride, strict=True)]
    return slice_(g, low, limit, stride)


def _concatenate(node: Node, g: Node, position: int) -> Node:
    axis, ends = node.attrs["axis"], ends_of_parts(node)
    return slice_along(g, axis, ends[position] - node.operands[position].shape[axis], ends[position])


def _flip(node: Node, g: Node) -> Node:
    return flip(g, node.attrs["axes"])


RULES: dict[str, GradientRule] = {
    "reshape": by_operand(_reshape),
    "transpose": by_operand(_transpose),
    "broadcast": by_operand(_broadcast),
    "slice": by_operand(_slice),
    "pad": by_operand(_pad),
    "concatenate": _concatenate,
    "flip": by_operand(_flip),
}
