"""Sums in the gradient of a norm, in which deviations from the mean cancel.

The gradient of a mean and a variance adds multiples of `x - mean(x)` to the cotangent g, and then sums over the same
axes. The deviations add up to zero, so only the cotangent is left, in a sum that the bias's gradient often needs too:

    sum(c · g + d · (x - mean(x)))  =  c · sum(g)            c and d are the same along the axes

That saves norms a walk over their rows which would have to wait for the one before. A sum of deviations alone stays:
its rounding error may be what somebody asks for.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.ir.graph import Node
from lavax.passes.build.builder import broadcast, multiply, sum_over
from lavax.passes.build.matching import is_splat, other_axes, splat_value
from lavax.passes.simplify.rewriting import RewriteRule

_SAME = 1e-6  # shares of a whole, whose reciprocals are rounded
_DEEPEST = 8  # additions below each other that are looked through


def _without_deviations(node: Node) -> Node | None:
    """sum(c · g + d · (x - mean(x))) -> c · sum(g)."""
    (x,) = node.operands
    axes = node.attrs["axes"]
    left = _rest(x, axes, _DEEPEST) if x.op == "add" and node.dtype.is_float else x
    if left is x or left is None:
        return None
    factors, left = _factored(left, axes)
    total, kept = sum_over(left, axes), other_axes(x.type.rank, axes)
    for factor in factors:
        places = [kept.index(place) for place in factor.attrs["axes"]]
        total = multiply(total, broadcast(factor.operands[0], node.shape, places))
    return total


def _factored(node: Node, axes: Sequence[int]) -> tuple[list[Node], Node]:
    """The factors of a product that are the same along the axes, and what else it is."""
    factors: list[Node] = []
    while node.op == "multiply":
        same = [operand for operand in node.operands if _is_same_along(operand, axes)]
        if not same:
            break
        factors.append(same[0])
        first, second = node.operands
        node = second if same[0] is first else first
    return factors, node


def _rest(node: Node, axes: Sequence[int], depth: int) -> Node | None:
    """The value without summands that are multiples of deviations; None if there is no other, or two are left."""
    if node.op != "add" or depth == 0:
        return node
    left = [operand for operand in node.operands if not _cancels(operand, axes)]
    if len(left) == 1:
        return _rest(left[0], axes, depth - 1)
    return node if left else None


def _cancels(node: Node, axes: Sequence[int]) -> bool:
    """Whether it is deviations from a mean over the axes times a factor that is the same along them."""
    if node.op != "multiply":
        return False
    for factor, other in (node.operands, node.operands[::-1]):
        if _is_same_along(factor, axes) or is_splat(factor):
            return _is_deviation(other, axes) or _cancels(other, axes)
    return False


def _is_same_along(node: Node, axes: Sequence[int]) -> bool:
    """Whether its elements are repeated along the axes."""
    return node.op == "broadcast" and not set(node.attrs["axes"]) & set(axes)


def _is_deviation(node: Node, axes: Sequence[int]) -> bool:
    """Whether it is x - mean(x) over the axes."""
    if node.op != "subtract":
        return False
    x, mean = node.operands
    kept = other_axes(x.type.rank, axes)
    if mean.op != "broadcast" or list(mean.attrs["axes"]) != kept:
        return False
    total = _without_division(mean.operands[0], prod(x.shape[axis] for axis in axes))
    if total is None or total.op != "sum":
        return False
    (summed,) = total.operands
    if x.op == "transpose" and x.operands[0] is summed:
        places = x.attrs["axes"]
        in_order = [places[axis] for axis in kept]
        return in_order == sorted(in_order) and set(total.attrs["axes"]) == {places[axis] for axis in axes}
    return x is summed and set(total.attrs["axes"]) == set(axes)


def _without_division(mean: Node, count: int) -> Node | None:
    """The sum of which this is the mean of `count` elements."""
    if mean.op not in ("multiply", "divide"):
        return None
    for total, number in (mean.operands, mean.operands[::-1]):
        if is_splat(number) and (mean.op == "multiply" or number is mean.operands[1]):
            share = splat_value(number) * count if mean.op == "multiply" else splat_value(number) / count
            return total if abs(share - 1) < _SAME else None
    return None


RULES: dict[str, tuple[RewriteRule, ...]] = {"sum": (_without_deviations,)}
