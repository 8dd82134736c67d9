"""Gradients of convolutions, which are convolutions, and of the movement that forms windows."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import (
    build,
    dot,
    flip,
    pad,
    precision_of_gradient,
    shear,
    slice_,
    sum_over,
    transpose,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand

Axes = tuple[int, ...]


def _axes_in_result(node: Node) -> tuple[Axes, dict[int, int], Axes]:
    """The batch axes of a convolution's result, the position of each other left axis, and the right's free axes."""
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    left, right = node.operands
    first = len(left_batch)
    kept = free_axes(left.type, left_batch, left_sum)
    free = free_axes(right.type, (*right_batch, *node.attrs["window"][1]), right_sum)
    positions = {axis: first + number for number, axis in enumerate(kept)}
    last = first + len(kept)
    return tuple(range(first)), positions, tuple(range(last, last + len(free)))


def _ordered(x: Node, positions: Sequence[int]) -> Node:
    """`x` with its axis d at positions[d]."""
    return transpose(x, sorted(range(len(positions)), key=positions.__getitem__))


def _of_left(node: Node, g: Node) -> Node:
    """Convolves the cotangent, spread by the stride, with the flipped right operand.

    With j = i·(interior + 1) + low, the element i of an axis of the left operand is in the window o at k where
    j = o·stride + k·dilation, so it gets the sum over k of g[(j - k·dilation)/stride] · right[k].
    """
    left, right = node.operands
    of_left, of_right = node.attrs["window"]
    batch, positions, free = _axes_in_result(node)
    right_batch, right_sum = node.attrs["batch"][1], node.attrs["contract"][1]
    low, high = [], []
    for number, (axis, other) in enumerate(zip(of_left, of_right, strict=True)):
        stride, dilation, interior = (node.attrs[name][number] for name in ("stride", "dilation", "interior"))
        before = node.attrs["low"][number]
        low.append((right.shape[other] - 1) * dilation - before)
        high.append((left.shape[axis] - 1) * (interior + 1) + before - (g.shape[positions[axis]] - 1) * stride)
    pulled = build(
        "conv",
        g,
        flip(right, of_right),
        window=(tuple(positions[axis] for axis in of_left), of_right),
        stride=tuple(between + 1 for between in node.attrs["interior"]),
        low=tuple(low),
        high=tuple(high),
        interior=tuple(step - 1 for step in node.attrs["stride"]),
        dilation=node.attrs["dilation"],
        contract=(free, free_axes(right.type, (*right_batch, *of_right), right_sum)),
        batch=(batch, right_batch),
        **precision_of_gradient(node),
    )
    meets = dict(zip(right_sum, node.attrs["contract"][0], strict=True))
    return _ordered(pulled, [*node.attrs["batch"][0], *positions, *(meets[axis] for axis in sorted(right_sum))])


def _of_strided_left(node: Node, g: Node) -> Node:
    """The same without multiplying by the zeros that a stride would put between the cotangent's elements.

    The cotangent times the right operand gives, for each window o, the contribution of each of its elements k. The
    contributions are moved to the position of the element and summed.
    """
    left, right = node.operands
    of_left, of_right = node.attrs["window"]
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    batch, positions, free = _axes_in_result(node)
    contract = free, free_axes(right.type, (*right_batch, *of_right), right_sum)
    product = dot(g, right, contract, (batch, right_batch), **precision_of_gradient(node))
    first = len(batch) + len(positions)
    rest = {axis: first + number for number, axis in enumerate(sorted((*right_sum, *of_right)))}
    standing = positions | dict(zip(left_batch, batch, strict=True))
    standing |= {axis: rest[other] for axis, other in zip(left_sum, right_sum, strict=True)}
    rank = left.type.rank
    parts = transpose(product, [*(standing[axis] for axis in range(rank)), *(rest[axis] for axis in of_right)])
    low, high = ([0] * rank for _ in range(2))
    for axis, *widths in zip(of_left, node.attrs["low"], node.attrs["high"], strict=True):
        low[axis], high[axis] = widths
    wide = [extent + before + after for extent, before, after in zip(left.shape, low, high, strict=True)]
    elements = tuple(range(rank, parts.type.rank))
    spread = build(
        "unshear",
        parts,
        type=parts.type.with_shape((*wide, *parts.shape[rank:])),
        axes=of_left,
        along=elements,
        stride=node.attrs["stride"],
        dilation=node.attrs["dilation"],
    )
    start = [max(before, 0) for before in low]
    limit = [extent - max(after, 0) for extent, after in zip(wide, high, strict=True)]
    kept = slice_(sum_over(spread, elements), start, limit, [1] * rank)
    before, after = ([max(-width, 0) for width in widths] for widths in (low, high))
    return pad(kept, before, after, [0] * rank, kept.dtype.number(0))


def _of_right(node: Node, g: Node) -> Node:
    """Convolves the left operand with the cotangent as the window; stride and dilation change roles."""
    left, right = node.operands
    of_left, of_right = node.attrs["window"]
    batch, positions, _ = _axes_in_result(node)
    left_batch, left_sum = node.attrs["batch"][0], node.attrs["contract"][0]
    alike = [axis for axis in positions if axis not in of_left]
    high = []
    for number, (axis, other) in enumerate(zip(of_left, of_right, strict=True)):
        stride, dilation, interior = (node.attrs[name][number] for name in ("stride", "dilation", "interior"))
        span = (right.shape[other] - 1) * dilation + (g.shape[positions[axis]] - 1) * stride + 1
        high.append(span - node.attrs["low"][number] - (left.shape[axis] - 1) * (interior + 1) - 1)
    pulled = build(
        "conv",
        left,
        g,
        window=(of_left, tuple(positions[axis] for axis in of_left)),
        stride=node.attrs["dilation"],
        low=node.attrs["low"],
        high=tuple(high),
        interior=node.attrs["interior"],
        dilation=node.attrs["stride"],
        contract=(tuple(alike), tuple(positions[axis] for axis in alike)),
        batch=(left_batch, batch),
        **precision_of_gradient(node),
    )
    meets = dict(zip((*left_sum, *of_left), (*node.attrs["contract"][1], *of_right), strict=True))
    right_free = free_axes(right.type, (*node.attrs["batch"][1], *of_right), node.attrs["contract"][1])
    return _ordered(pulled, [*node.attrs["batch"][1], *(meets[axis] for axis in sorted(meets)), *right_free])


def _conv(node: Node, g: Node, position: int) -> Node:
    if 0 in (*g.shape, *node.operands[0].shape, *node.operands[1].shape):
        return zeros(node.operands[position].type)
    if position:
        return _of_right(node, g)
    is_strided = max(node.attrs["stride"], default=1) > 1 and not any(node.attrs["interior"])
    return (_of_strided_left if is_strided and not _has_single_products(node) else _of_left)(node, g)


def _has_single_products(node: Node) -> bool:
    """Whether each element of a window gives one product to one result, as a channel by itself does: there is no sum
    for which contributions would be worth storing."""
    free, summed = _axes_in_result(node)[2], node.attrs["contract"][1]
    extents = *(node.shape[axis] for axis in free), *(node.operands[1].shape[axis] for axis in summed)
    return all(extent == 1 for extent in extents)


def _shear(node: Node, g: Node) -> Node:
    (x,) = node.operands
    return zeros(x.type) if g.type.size == 0 else build("unshear", g, type=x.type, **node.attrs)


def _unshear(node: Node, g: Node) -> Node:
    attrs = node.attrs
    return shear(g, node.operands[0].shape, attrs["axes"], attrs["along"], attrs["stride"], attrs["dilation"])


RULES: dict[str, GradientRule] = {
    "conv": _conv,
    "shear": by_operand(_shear),
    "unshear": by_operand(_unshear),
}
