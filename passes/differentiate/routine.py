"""Gradients of cumulative operations and of sorting."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.ops.cumulative import CUMULATIVE
from lavax.passes.build.builder import (
    add,
    build,
    equal,
    exp,
    gather,
    index_type,
    iota,
    logical_and,
    logical_not,
    multiply,
    pad,
    scatter_add,
    slice_along,
    splat,
    subtract,
    where,
    zeros,
)
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand


def _moved(x: Node, axis: int, by: int, filling: float) -> Node:
    """Elements shifted by `by` along `axis`, backwards if negative; `filling` fills the gap."""
    length, rank = x.shape[axis], x.type.rank
    kept = slice_along(x, axis, max(-by, 0), length - max(by, 0))
    low, high = ([width if d == axis else 0 for d in range(rank)] for width in (max(by, 0), max(-by, 0)))
    return pad(kept, low, high, [0] * rank, filling)


def _cumulative_sum(node: Node, g: Node) -> Node:
    return build("cumulative_sum", g, axis=node.attrs["axis"], reverse=not node.attrs["reverse"])


def _direction(node: Node) -> int:
    """The direction of a cumulative operation along its axis."""
    return -1 if node.attrs["reverse"] else 1


def _by_doubling(node: Node, g: Node, joined: Callable[..., Node], shares: Callable[..., Node]) -> Node:
    """The gradient through log2(n) steps, each of which joins every element with the one a power of two before it.

    `shares(x, y, xy)` is the derivative of xy, the join of x and y, by x. There is no division, so zeros are no
    special case.
    """
    (value,) = node.operands
    _, fold = CUMULATIVE[node.op]
    axis, steps = node.attrs["axis"], []
    direction, distance = _direction(node), 1
    while distance < node.shape[axis]:
        earlier = _moved(value, axis, direction * distance, fold.identity(value.dtype))
        whole = joined(value, earlier)
        steps.append((distance, shares(value, earlier, whole), shares(earlier, value, whole)))
        value, distance = whole, 2 * distance
    for distance, own, of_earlier in reversed(steps):
        g = add(multiply(g, own), _moved(multiply(g, of_earlier), axis, -direction * distance, g.dtype.number(0)))
    return g


def _cumulative_prod(node: Node, g: Node) -> Node:
    return _by_doubling(node, g, multiply, lambda x, y, xy: y)


def _log_of_sum(x: Node, y: Node) -> Node:
    """log(exp(x) + exp(y)); the difference of two equal infinities counts as zero."""
    highest = build("maximum", x, y)
    distance = where(equal(x, y), zeros(x.type), build("abs", subtract(x, y)))
    return add(highest, build("log1p", exp(build("negate", distance))))


def _share_of_sum(x: Node, y: Node, whole: Node) -> Node:
    """exp(x) / (exp(x) + exp(y)); the share is zero if the whole is minus infinity."""
    nothing = equal(whole, splat(float("-inf"), whole.type))
    safe = where(nothing, zeros(whole.type), whole)
    return where(nothing, zeros(x.type), exp(subtract(x, safe)))


def _cumulative_logsumexp(node: Node, g: Node) -> Node:
    return _by_doubling(node, g, _log_of_sum, _share_of_sum)


def _cumulative_extremum(node: Node, g: Node) -> Node:
    """The first element that equals a partial extremum gets its gradient."""
    (x,) = node.operands
    axis = node.attrs["axis"]
    if x.type.size == 0:
        return g
    positions = iota(index_type(x.shape), axis)
    before = _moved(node, axis, _direction(node), node.dtype.number(0))
    first = splat(x.shape[axis] - 1 if node.attrs["reverse"] else 0, positions.type)
    is_new = logical_not(logical_and(equal(node, before), logical_not(equal(positions, first))))
    latest = "cumulative_min" if node.attrs["reverse"] else "cumulative_max"
    winner = build(latest, where(is_new, positions, first), axis=axis, reverse=node.attrs["reverse"])
    return scatter_add(zeros(x.type), g, _along(winner, axis), range(x.type.rank))


def _along(positions: Node, axis: int) -> list[Node]:
    """Indices into an array of that shape: `positions` along `axis`, and each element's own position elsewhere."""
    return [positions if d == axis else iota(positions.type, d) for d in range(positions.type.rank)]


def _sort(node: Node, g: Node) -> Node:
    """Each element gets the gradient of the position that it moved to."""
    (x,) = node.operands
    axis = node.attrs["axis"]
    if x.type.size == 0:
        return g
    return build("unsort", g, build("sort_order", x, axis=axis), axis=axis)


def _unsort(node: Node, g: Node, position: int) -> Node:
    x, order = node.operands
    return gather(g, _along(order, node.attrs["axis"]), range(x.type.rank)) if x.type.size else g


RULES: dict[str, GradientRule] = {
    "cumulative_sum": by_operand(_cumulative_sum),
    "cumulative_prod": by_operand(_cumulative_prod),
    "cumulative_max": by_operand(_cumulative_extremum),
    "cumulative_min": by_operand(_cumulative_extremum),
    "cumulative_logsumexp": by_operand(_cumulative_logsumexp),
    "sort": by_operand(_sort),
    "unsort": _unsort,
}
