"""Parts of attention, joined by the products that read the result.

A kernel that joins the parts of a new token's attention would wait for attention, and the product for that kernel. Each
row of the product reads the whole vector anyway, so it joins the parts itself: what combines them moves behind the
repetition of the vector for each row, where fusion computes it with the product.

    broadcast(f(x, y))  =  f(broadcast(x), broadcast(y))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import build, located, set_location, splat
from lavax.passes.prepare.vector_norms import sums_of
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class JoinedParts:
    """The elements of parts that rows of a product read and join again and again, rather than wait for a kernel.

    Exercised by `python -m benchmarks models` (decoding).
    """

    repeated: int = 1 << 21


JOINED_PARTS = JoinedParts()
_MOVES = frozenset(("reshape", "broadcast", "slice", "transpose"))
Users = Mapping[Node, Sequence[Node]]


def with_parts_joined_in_products(graph: Graph, target: Target) -> Graph:
    """The graph with parts of attention joined in the rows of products of a vector, where that is little work."""
    statistics = [node for node in graph.nodes if node.op == "attention_logsumexp"]
    if not statistics or not target.products.vectors_as_sums:
        return graph
    repeating = {node for node in graph.nodes if _repeats_parts(node, graph.users)}
    if not repeating:
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            rebuilt = with_operands(node, tuple([found[operand] for operand in node.operands]))
            found[node] = _joined_in_rows(rebuilt) if node in repeating else rebuilt
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _repeats_parts(node: Node, users: Users) -> bool:
    """Whether a node repeats what is joined of parts of attention for rows of products, and nothing else reads it."""
    if node.op != "broadcast" or sums_of(node, users) is None:
        return False
    leaves = _leaves(node.operands[0])
    if not any(leaf.op == "attention_logsumexp" for leaf in leaves):
        return False
    read = sum(leaf.type.size for leaf in leaves)
    return node.type.size // node.operands[0].type.size * read <= JOINED_PARTS.repeated


def _leaves(node: Node) -> set[Node]:
    """The values that a value is made of by movement and functions of elements."""
    found, ahead, seen = set[Node](), [node], {node}
    while ahead:
        each = ahead.pop()
        if not _is_made_by_elements(each):
            found.add(each)
            continue
        ahead += (operand for operand in each.operands if operand not in seen)
        seen.update(each.operands)
    return found


def _is_made_by_elements(node: Node) -> bool:
    return node.op in _MOVES or (node.op in OPERATIONS and OPERATIONS[node.op].family == "elementwise")


def _joined_in_rows(repeated: Node) -> Node:
    """The broadcast, with functions of elements after it and movement before them."""
    made: dict[tuple[Node, tuple[Node, ...]], Node] = {}
    shape = repeated.shape

    def moved(node: Node, moves: tuple[Node, ...]) -> Node:
        """A value moved by each of `moves`, the last one first."""
        key = node, moves
        if key not in made:
            made[key] = _moved(node, moves)
        return made[key]

    def _moved(node: Node, moves: tuple[Node, ...]) -> Node:
        if node.op in _MOVES:
            return moved(node.operands[0], (*moves, node))
        if node.op == "constant":
            return splat(node.attrs["value"], node.type.with_shape(shape))
        if _is_made_by_elements(node):
            operands = [moved(operand, moves) for operand in node.operands]
            return build(node.op, *operands, type=node.type.with_shape(shape), **node.attrs)
        found = node
        for move in reversed(moves):
            found = build(move.op, found, type=move.type.with_dtype(node.dtype), **move.attrs)
        return found

    return moved(repeated.operands[0], (repeated,))
