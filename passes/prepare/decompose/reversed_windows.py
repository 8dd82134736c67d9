"""Convolutions with a large window over a spread operand, as convolutions with that operand as the window.

The gradient of a transposed convolution's weights is of this kind: the operand, whose interior holds zeros, with the
cotangent as the window. In phases that is a product for each element of a phase, which all read both arrays. With the
operands' roles reversed the interior becomes the dilation of a window, nothing has zeros in it, and one product gives
all results: with i·(interior + 1) + low the place of the element i, the result o is the sum over i of left[i] ·
right[i·(interior + 1) + low - o], which a convolution of the right operand has in reverse order.
"""

from __future__ import annotations

from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, flip, precision_of, transposed
from lavax.passes.prepare.decompose.phases import axis_of_phases


def has_large_window(node: Node) -> bool:
    """Whether a convolution of a spread operand has a window of more elements than results."""
    if node.op != "conv" or node.type.size == 0 or axis_of_phases(node) is None:
        return False
    elements = prod(node.operands[1].shape[axis] for axis in node.attrs["window"][1])
    places = _places(node)
    results = prod(node.shape[places[axis]] for axis in node.attrs["window"][0])
    return bool(max((*node.attrs["stride"], *node.attrs["dilation"])) == 1 and elements > results)


def columns_of(node: Node) -> int:
    """The free elements of the right operand besides its window, such as channels."""
    right, attrs = node.operands[1], node.attrs
    axes = free_axes(right.type, (*attrs["batch"][1], *attrs["window"][1]), attrs["contract"][1])
    return prod(right.shape[axis] for axis in axes)


def with_roles_reversed(node: Node) -> Node:
    """The same numbers by a convolution of the right operand."""
    left, right = node.operands
    (of_left, of_right), (left_batch, right_batch) = node.attrs["window"], node.attrs["batch"]
    left_sum, right_sum = node.attrs["contract"]
    places = _places(node)
    low, high, dilation = [], [], []
    for number, (axis, other) in enumerate(zip(of_left, of_right, strict=True)):
        results, step = node.shape[places[axis]], node.attrs["interior"][number] + 1
        low.append(results - 1 - node.attrs["low"][number])
        high.append(results + (left.shape[axis] - 1) * step - low[-1] - right.shape[other])
        dilation.append(step)
    ones = (1,) * len(of_left)
    reverse = build(
        "conv",
        right,
        left,
        window=(of_right, of_left),
        stride=ones,
        low=tuple(low),
        high=tuple(high),
        interior=(0,) * len(of_left),
        dilation=tuple(dilation),
        contract=(right_sum, left_sum),
        batch=(right_batch, left_batch),
        **precision_of(node),
    )
    # Axes of both results: batch, what the first operand keeps, what the second one keeps besides its window.
    batch = len(left_batch)
    kept = free_axes(right.type, right_batch, right_sum)
    rest = free_axes(left.type, (*left_batch, *of_left), left_sum)
    other_of = dict(zip(of_left, of_right, strict=True))
    columns = [axis for axis in kept if axis not in of_right]
    order = [*range(batch)]
    for axis in places:
        is_window = axis in other_of
        order.append(batch + kept.index(other_of[axis]) if is_window else batch + len(kept) + rest.index(axis))
    order += [batch + kept.index(axis) for axis in columns]
    return flip(transposed(reverse, order), [places[axis] for axis in of_left])


def _places(node: Node) -> dict[int, int]:
    """Where the result has each axis that the left operand keeps, windows among them."""
    batch, summed = node.attrs["batch"][0], node.attrs["contract"][0]
    kept = free_axes(node.operands[0].type, batch, summed)
    return {axis: len(batch) + number for number, axis in enumerate(kept)}
