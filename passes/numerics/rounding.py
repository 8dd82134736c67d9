"""What products round their operands to: said in the graph as casts, once for all products that read a value."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DTYPES, DType, float32
from lavax.passes.build.builder import cast, located, set_location

# Beyond so many nodes nobody asks whether all elements are numbers of a dtype.
_FAR = 32
# These have the elements of their operand, each of them: rounding before them is rounding behind them.
_REORDERING = frozenset(("reshape", "transpose", "flip"))

Roundings = dict[tuple[Node, DType], Node]


def with_rounded_operands(graph: Graph) -> Graph:
    """The graph whose products with a precision have operands that it holds exactly."""
    roundings: Roundings = {}
    found = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            if node.attrs.get("precision"):
                dtype = DTYPES[node.attrs["precision"]]
                operands = tuple(_rounded(operand, dtype, roundings) for operand in operands)
            found[node] = node if operands == node.operands else with_operands(node, operands)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def rounding_of(operand: Node, dtype: DType) -> Node | None:
    """The cast that rounds a product's operand from float32; None if it was of the dtype before."""
    node = operand
    for _ in range(_FAR):
        if node.op == "cast" and node.dtype == dtype:
            return node if node.operands[0].dtype == float32 else None
        if node.op != "cast" and not (_moves(node) and len(node.operands) == 1):
            break
        (node,) = node.operands
    return None


def _rounded(node: Node, dtype: DType, roundings: Roundings) -> Node:
    if _is_held(node, dtype):
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


def _is_held(node: Node, dtype: DType) -> bool:
    """Whether all elements are numbers of the dtype: cast from it, moved, and zeros."""
    stack = [node]
    for _ in range(_FAR):
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
