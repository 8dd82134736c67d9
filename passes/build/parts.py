"""Sums of the few parts that a contraction was split into, added where a row's kernel reads them.

A kernel that adds parts waits for the contraction, and what it writes is waited for in turn. Where a reduction of whole
rows is next, as in a norm, its kernel adds the parts itself. Other sums of parts stay reductions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from lavax.base.quick_dataclasses import dataclass
from functools import reduce

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import build, reshaped
from lavax.passes.build.matching import is_unit_reshape, without_units

Users = Mapping[Node, Sequence[Node]]


@dataclass(frozen=True)
class AddedParts:
    """Which parts are added by the kernel of a row, and how far ahead its reduction may be."""

    most: int = 8
    nodes: int = 24


_ADDED_PARTS = AddedParts()


@dataclass(frozen=True)
class Rows:
    """What a reduction of whole rows goes over: a shape, and the last of its axes."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]


def with_parts_added_in_rows(graph: Graph) -> Graph:
    """The graph with terms in place of sums over parts that a reduction of rows reads soon."""
    users = graph.users
    chosen = {node for node in graph.nodes if _is_sum_of_few(node, users) and rows_ahead(node, users) is not None}
    if not chosen:
        return graph
    found = {node: node for node in graph.inputs}
    for node in graph.nodes:
        rebuilt = with_operands(node, tuple(found[operand] for operand in node.operands))
        found[node] = _in_terms(rebuilt) if node in chosen else rebuilt
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _is_sum_of_few(node: Node, users: Users) -> bool:
    if node.op != "sum" or len(node.attrs["axes"]) != 1 or node.operands[0].op != "dot":
        return False
    (product,), (axis,) = node.operands, node.attrs["axes"]
    is_alone = len(users[product]) == 1 and axis == len(product.attrs["batch"][0]) - 1
    return is_alone and product.shape[axis] <= _ADDED_PARTS.most


def _in_terms(node: Node) -> Node:
    (product,), (axis,) = node.operands, node.attrs["axes"]
    terms = [reshaped(_part(product, axis, place), node.shape) for place in range(product.shape[axis])]
    return reduce(lambda one, other: build("add", one, other), terms)


def _part(product: Node, axis: int, place: int) -> Node:
    start, limit = [0] * product.type.rank, list(product.shape)
    start[axis], limit[axis] = place, place + 1
    return build("slice", product, start=tuple(start), limit=tuple(limit), stride=(1,) * product.type.rank)


def is_sum_of_parts(node: Node) -> bool:
    """Whether a node adds all parts of a contraction, term by term."""
    count = 0
    total = node
    while total.op == "add" and _product_of(total.operands[1]) is not None:
        count, total = count + 1, total.operands[0]
    product = _product_of(total)
    return count > 0 and product is not None and (count + 1) * node.type.size == product.type.size


def _product_of(term: Node) -> Node | None:
    """The contraction that a term is a part of."""
    if term.op != "reshape" or term.operands[0].op != "slice":
        return None
    (product,) = term.operands[0].operands
    return product if product.op == "dot" else None


def rows_ahead(node: Node, users: Users) -> Rows | None:
    """The rows of the first reduction that is computed, element by element, from a node and goes over its last axes."""
    ahead = list(users.get(node, ()))
    seen: set[Node] = set()
    while ahead and len(seen) < _ADDED_PARTS.nodes:
        reader = ahead.pop(0)
        if reader in seen:
            continue
        seen.add(reader)
        if OPERATIONS[reader.op].family == "reduction" and "axes" in reader.attrs:
            (operand,) = reader.operands
            axes = tuple(sorted(reader.attrs["axes"]))
            first = operand.type.rank - len(axes)
            is_last = axes == tuple(range(first, operand.type.rank))
            if is_last and without_units(operand.shape) == without_units(node.shape):
                return Rows(operand.shape, reader.attrs["axes"])
        elif reader.type.size == node.type.size and _keeps_places(reader):
            ahead += users.get(reader, ())
    return None


def _keeps_places(node: Node) -> bool:
    return OPERATIONS[node.op].family == "elementwise" or is_unit_reshape(node)
