"""Transposed convolutions that write few channels, as contributions to their elements.

In phases, each is a product of windows of the operand with few columns: a column or two of a tile, or a sum over rows
that reads every element once for each element of the window. The other way round the elements of the window are
columns: one product of the operand, without windows, gives what each of its elements adds to the results around it, and
these contributions are summed where they meet (passes/prepare/decompose/strided_sums.py).
"""

from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, dot, flip, precision_of, slice_, sum_over, transpose
from lavax.passes.prepare.decompose.phases import axis_of_phases


@dataclass(frozen=True)
class FewChannels:
    """Exercised by `python -m benchmarks architectures` (volume, dcgan)."""

    most_channels: int = 4  # that are written: contributions are as many as the window's elements times these
    least_summed: int = 16  # channels of each sum, to which contributions, which are stored, are few
    most_columns: int = 256


_LIMITS = FewChannels()


def writes_few_channels(node: Node) -> bool:
    """Whether a convolution has phases, sums many channels and writes few."""
    if node.op != "conv" or node.type.size == 0 or axis_of_phases(node) is None or node.attrs["batch"][0]:
        return False
    right, attrs = node.operands[1], node.attrs
    elements = [right.shape[axis] for axis in attrs["window"][1]]
    summed = prod(right.shape[axis] for axis in attrs["contract"][1])
    channels = right.type.size // prod(elements) // summed
    return (
        max((*attrs["stride"], *attrs["dilation"])) == 1
        and all(low < extent for low, extent in zip(attrs["low"], elements, strict=True))
        and channels <= _LIMITS.most_channels
        and summed >= _LIMITS.least_summed
        and channels * prod(elements) <= _LIMITS.most_columns
    )


def contributions_summed(node: Node) -> Node:
    """The convolution as a product and sums of it.

    With i·(interior + 1) + low the place of an element, its product with the element k of the window, counted from
    the last one, is a part of the result number i·(interior + 1) + k - (elements - 1 - low).
    """
    left, right = node.operands
    (of_left, of_right), (left_sum, right_sum) = node.attrs["window"], node.attrs["contract"]
    product = dot(left, flip(right, of_right), (left_sum, right_sum), ((), ()), **precision_of(node))
    kept = free_axes(left.type, (), left_sum)
    rest = free_axes(right.type, (), right_sum)
    place = {axis: len(kept) + number for number, axis in enumerate(rest)}
    free = [place[axis] for axis in rest if axis not in of_right]
    parts = transpose(product, (*range(len(kept)), *free, *(place[axis] for axis in of_right)))
    rank = node.type.rank
    wide, start = list(node.shape), [0] * rank
    axes = [kept.index(axis) for axis in of_left]
    for number, (axis, other) in enumerate(zip(axes, of_right, strict=True)):
        elements, step = right.shape[other], node.attrs["interior"][number] + 1
        start[axis] = elements - 1 - node.attrs["low"][number]
        wide[axis] = max((parts.shape[axis] - 1) * step + elements, start[axis] + node.shape[axis])
    spread = build(
        "unshear",
        parts,
        type=parts.type.with_shape((*wide, *parts.shape[rank:])),
        axes=tuple(axes),
        along=tuple(range(rank, parts.type.rank)),
        stride=tuple(between + 1 for between in node.attrs["interior"]),
        dilation=(1,) * len(axes),
    )
    limit = [first + extent for first, extent in zip(start, node.shape, strict=True)]
    elements = spread.shape[rank:]
    kept_part = slice_(spread, (*start, *(0 for _ in elements)), (*limit, *elements), [1] * spread.type.rank)
    return sum_over(kept_part, range(rank, spread.type.rank))
