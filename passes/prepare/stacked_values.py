"""Reductions over an axis along which values were stacked, as what joins the values one by one.

A row of stacked values selects each of its elements among all of them, and CPU drivers compute what a selection skips:
nine values are computed nine times.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavax.ir.graph import Node
from lavax.ir.monoids import REDUCTIONS
from lavax.passes.build.builder import build, reshaped
from lavax.passes.target.target import Target

MOST_STACKED = 32  # so that the statements of one element stay few


def joined_one_by_one(node: Node, target: Target) -> Node | None:
    """The values of a stack, joined as the reduction joins them; None for other reductions, and on GPUs.

    Sums of 8 and 16 bits stay, as they are rounded once.
    """
    (operand,), axes = node.operands, node.attrs["axes"]
    if target.vector == 1 or len(axes) != 1 or operand.op != "concatenate" or node.dtype.bits in (8, 16):
        return None
    (axis,) = axes
    if operand.attrs["axis"] != axis or not 1 < operand.shape[axis] <= MOST_STACKED:
        return None
    values = list(_stacked(operand, axis))
    if len(values) < operand.shape[axis]:
        return None
    join = REDUCTIONS[node.op].join
    assert join is not None, "reductions join two values by an operation"
    first, *others = (reshaped(value, node.shape) for value in values)
    for value in others:
        first = build(join, first, value)
    return first


def _stacked(node: Node, axis: int) -> Iterator[Node]:
    """The operands of a concatenation, which may be one of concatenations."""
    for operand in node.operands:
        if operand.op == "concatenate" and operand.attrs["axis"] == axis:
            yield from _stacked(operand, axis)
        else:
            yield operand
