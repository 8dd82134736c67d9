"""Slices of a product of a vector that are combined with each other, computed as products side by side.

A rotary embedding combines each element of a head with the one half a head away, and the cell of an LSTM its four
gates. A row of the product gives one element, so a second kernel would have to combine them. Products of the slices of
the matrix are sums over rows of one shape, which one kernel computes, and what combines them comes after its sums:

    slice(sum(w · x))  =  sum(slice(w) · x)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import (
    broadcast,
    cast,
    concatenate,
    located,
    multiply,
    reshaped,
    set_location,
    slice_,
    sum_over,
    transposed,
)
from lavax.passes.numerics.narrow_movement import is_widening
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class SlicesOfProducts:
    """The slices that one kernel computes. Exercised by `python -m benchmarks models` (decoding)."""

    slices: int = 4  # of a product, at most: a row keeps a sum of each
    ahead: int = 12  # nodes made of a slice that are looked at, in search of where it meets the others


SLICES_OF_PRODUCTS = SlicesOfProducts()
Users = Mapping[Node, Sequence[Node]]


def with_slices_as_products(graph: Graph, target: Target) -> Graph:
    """The graph with the slices of a product of a vector as products, if nothing else reads it and they meet again."""
    if not target.products.vectors_as_sums:
        return graph
    users, outputs = graph.users, frozenset(graph.outputs)
    sums = [node for node in graph.nodes if _is_product_of_vector(node)]
    total_of = {each: total for total in sums for each in _slices_of(total, users, outputs)}
    if not total_of:
        return graph
    made = frozenset().union(*(_made_of(each, users) for each in total_of))
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            if node in total_of:
                found[node] = _product_of(node, total_of[node], found)
            elif _rounds_parts(node) and node in made:
                found[node] = _rounded_in_parts(node, found[node.operands[0]])
            else:
                found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _is_product_of_vector(node: Node) -> bool:
    return node.op == "sum" and node.operands[0].op == "multiply" and _repeated_side(node) is not None


def _repeated_side(total: Node) -> int | None:
    """Which factor of the elements that are added up is a vector, repeated for each sum."""
    sides = [operand.op == "broadcast" and operand.attrs["axes"] == total.attrs["axes"] for operand in
             total.operands[0].operands]  # fmt: skip
    return sides.index(True) if any(sides) else None


def _slices_of(total: Node, users: Users, outputs: Collection[Node]) -> list[Node]:
    """The slices of a product; none if something else reads it, they differ in shape, or they do not meet."""
    slices: list[Node] = []
    ahead = [total]
    while ahead:
        node = ahead.pop()
        for user in users.get(node, ()):
            if user.op not in ("slice", "cast", "reshape"):
                return []
            (slices if user.op == "slice" else ahead).append(user)
        if node in outputs:
            return []
    alike = len({each.shape for each in slices}) == 1 and 1 < len(slices) <= SLICES_OF_PRODUCTS.slices
    if not alike or sum(each.type.size for each in slices) > total.type.size:
        return []
    first, *others = (_made_of(each, users) for each in slices)
    return slices if all(first & other for other in others) else []


def _made_of(node: Node, users: Users) -> frozenset[Node]:
    """Nodes near to a value that are computed from it element by element, or from what that is moved to."""
    found: dict[Node, None] = {}
    ahead = [node]
    while ahead and len(found) < SLICES_OF_PRODUCTS.ahead:
        for user in users.get(ahead.pop(0), ()):
            family = OPERATIONS[user.op].family if user.op in OPERATIONS else "region"
            if user not in found and (family == "elementwise" or user.op in ("reshape", "concatenate")):
                found[user] = None
                ahead.append(user)
    return frozenset(found)


def _product_of(part: Node, total: Node, found: Mapping[Node, Node]) -> Node:
    """The product of the slice of the matrix with the vector, in the slice's shape and dtype."""
    moves: list[Node] = []  # from the sum to what is sliced, the last one first
    (node,) = part.operands
    whole = node.shape
    while node is not total:
        moves.append(node)
        (node,) = node.operands
    axes, (elements,) = total.attrs["axes"], total.operands
    kept = tuple(axis for axis in range(len(elements.shape)) if axis not in axes)
    summed, rows, side = tuple(elements.shape[axis] for axis in axes), part.type.size, _repeated_side(total)
    operands = []
    for number, operand in enumerate(elements.operands):
        if number == side:
            vector = reshaped(found[operand.operands[0]], (prod(summed),))
            operands.append(broadcast(vector, (prod(summed), rows), (0,)))
            continue
        matrix = reshaped(transposed(found[operand], (*axes, *kept)), (prod(summed), *whole))
        start, limit, stride = ((first, *part.attrs[name]) for name, first in
                                (("start", 0), ("limit", prod(summed)), ("stride", 1)))  # fmt: skip
        operands.append(reshaped(slice_(matrix, start, limit, stride), (prod(summed), rows)))
    result = sum_over(multiply(*operands), (0,))
    for move in reversed(moves):
        result = cast(result, move.dtype) if move.op == "cast" else result
    return reshaped(result, part.shape)


def _rounds_parts(node: Node) -> bool:
    return node.op == "cast" and node.operands[0].op == "concatenate" and not is_widening(node)


def _rounded_in_parts(node: Node, joined: Node) -> Node:
    """Each part is rounded by the kernel that computes it, not by those that read all."""
    return concatenate([cast(part, node.dtype) for part in joined.operands], joined.attrs["axis"])
