"""Sums of squared deviations of long columns, by parts that have a mean of their own.

The variance of a batch norm's channel waits for the channel's mean. Both are sums in parts, so they took four kernels
that waited for one another. For every c, and for the mean m of a part of n elements,

    Σ (x - c)²  =  Σ (x - m)² + n (m - c)²

so one kernel finds m and Σ (x - m)² of each part, and one kernel joins all parts. No term is negative, so nothing
cancels (Chan, Golub and LeVeque 1983).
"""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import (
    add,
    broadcast,
    divide,
    located,
    multiply,
    reshaped,
    set_location,
    splat,
    subtract,
    sum_over,
    transposed,
)
from lavax.passes.prepare.reductions import part_of_columns
from lavax.passes.target.target import Target

_BETWEEN = 8  # the most nodes from the sum of a column to what is subtracted from its elements


@dataclass(frozen=True)
class _Deviations:
    """A sum of squares of what differs from `center`, which follows from `total`, the sum of the same elements, perhaps
    in another order."""

    total: Node
    center: Node


@dataclass(frozen=True)
class _Parts:
    """The columns of a sum in parts, and what is known of each part."""

    elements: Node  # [parts, elements of a part, columns]
    total: Node  # [parts, columns]


def with_moments_in_parts(graph: Graph, target: Target) -> Graph:
    """The graph in which a variance of few long columns waits for no mean of whole columns."""
    chosen = {node: found for node in graph.nodes if (found := _deviations(node)) is not None}
    lengths = {found.total: part_of_columns(found.total, target) for found in chosen.values()}
    if not any(lengths.values()):
        return graph
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    parts: dict[Node, _Parts] = {}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            length = lengths.get(chosen[node].total if node in chosen else node)
            if length is None:
                new[node] = with_operands(node, tuple([new[operand] for operand in node.operands]))
            elif node in chosen:
                new[node] = _squares(node, parts[chosen[node].total], new[chosen[node].center])
            else:
                parts[node] = _in_parts(node, new[node.operands[0]], length)
                new[node] = reshaped(sum_over(parts[node].total, (0,)), node.shape)
    return graph_of(graph.inputs, [new[output] for output in graph.outputs])


def _deviations(node: Node) -> _Deviations | None:
    """How a sum is one of squared deviations from something that follows from the sum of the same elements."""
    if node.op != "sum" or node.operands[0].op != "multiply":
        return None
    left, right = node.operands[0].operands
    if left is not right or left.op != "subtract":
        return None
    elements, repeated = left.operands
    axes = node.attrs["axes"]
    kept = tuple(axis for axis in range(elements.type.rank) if axis not in axes)
    if repeated.op != "broadcast" or repeated.attrs["axes"] != kept or repeated.operands[0].shape != node.shape:
        return None
    if elements.op == "transpose":
        order = elements.attrs["axes"]
        (elements,), kept = elements.operands, tuple(order[axis] for axis in kept)
        axes = tuple(sorted(order[axis] for axis in axes))
    (center,) = repeated.operands
    total = _total_behind(center, elements, axes)
    return None if total is None or kept != tuple(sorted(kept)) else _Deviations(total, center)


def _total_behind(center: Node, elements: Node, axes: tuple[int, ...]) -> Node | None:
    """The sum of the elements over the axes that a value is computed from, soon and element by element."""
    stack = [center]
    for _ in range(_BETWEEN):
        node = stack.pop()
        if node.op == "sum" and node.operands == (elements,) and node.attrs["axes"] == axes:
            return node
        if node.op in OPERATIONS and OPERATIONS[node.op].family == "elementwise":
            stack += node.operands
        if not stack:
            return None
    return None


def _in_parts(total: Node, elements: Node, length: int) -> _Parts:
    axes = total.attrs["axes"]
    kept = tuple(axis for axis in range(elements.type.rank) if axis not in axes)
    columns = total.type.size
    split = reshaped(transposed(elements, (*axes, *kept)), (elements.type.size // (length * columns), length, columns))
    return _Parts(split, sum_over(split, (1,)))


def _squares(node: Node, parts: _Parts, center: Node) -> Node:
    """The sum of all squared deviations."""
    _, length, columns = parts.elements.shape
    count = splat(length, parts.total.type)
    mean = divide(parts.total, count)
    within = subtract(parts.elements, broadcast(mean, parts.elements.shape, (0, 2)))
    between = subtract(mean, broadcast(reshaped(center, (columns,)), mean.shape, (1,)))
    both = add(sum_over(multiply(within, within), (1,)), multiply(multiply(between, between), count))
    return reshaped(sum_over(both, (0,)), node.shape)
