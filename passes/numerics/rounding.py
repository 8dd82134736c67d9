"""Expresses the rounding of products' operands as casts, one for all products that read the same value."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS, names_of_family
from lavax.ir.types import DTYPES, DType, float32
from lavax.passes.build.builder import cast, located, set_location

# The most nodes that a search for the origin of a value visits.
_SEARCH_DEPTH = 32
_CONTRACTIONS = names_of_family("contraction")
# These have exactly the elements of their operand, so rounding can be moved before them.
_REORDERING = frozenset(("reshape", "transpose", "flip"))

Roundings = dict[tuple[Node, DType], Node]


def with_rounded_operands(graph: Graph) -> Graph:
    """The graph in which the operands of products with a precision are exact in that precision."""
    if not any(map(rounds_operands, graph.nodes)):
        return graph
    roundings: Roundings = {}
    found = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            if rounds_operands(node):
                dtype = DTYPES[node.attrs["precision"]]
                operands = tuple(rounded(operand, dtype, roundings) for operand in operands)
            found[node] = node if operands == node.operands else with_operands(node, operands)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def rounds_operands(node: Node) -> bool:
    """Whether the operands of a product are rounded. Those of attention with a precision are exact in it already."""
    return node.op in _CONTRACTIONS and node.attrs["precision"] != ""


def rounding_of(operand: Node, dtype: DType) -> Node | None:
    """The cast that rounds a product's operand from float32; None if the operand had the dtype before."""
    node = operand
    for _ in range(_SEARCH_DEPTH):
        if node.op == "cast" and node.dtype == dtype:
            return node if node.operands[0].dtype == float32 else None
        if node.op != "cast" and not (_moves(node) and len(node.operands) == 1):
            break
        (node,) = node.operands
    return None


def rounded(node: Node, dtype: DType, roundings: Roundings) -> Node:
    if is_held(node, dtype):
        return node
    moves, value = [], node
    while value.op in _REORDERING:
        moves.append(value)
        (value,) = value.operands
    if (value, dtype) not in roundings:
        roundings[value, dtype] = cast(cast(value, dtype), value.dtype)
    rounded = roundings[value, dtype]
    for move in reversed(moves):
        rounded = with_operands(move, (rounded,))
    return rounded


def is_held(node: Node, dtype: DType) -> bool:
    """Whether every element is exact in the dtype: values cast from it, possibly moved, and zeros."""
    stack = [node]
    for _ in range(_SEARCH_DEPTH):
        read = stack.pop()
        if _moves(read) and (read.op != "pad" or read.attrs["value"] == 0):
            stack += read.operands
        elif read.op != "cast" or read.operands[0].dtype != dtype:
            return False
        if not stack:
            return True
    return False


def _moves(node: Node) -> bool:
    return node.op in OPERATIONS and OPERATIONS[node.op].family == "movement"
