"""Performs 8-bit and 16-bit arithmetic in 32 bits, and casts the result back after every operation.

Shaders compute in 32 or 64 bits on every device. The cast back wraps integers, and rounds float16 and bfloat16 to the
nearest even. Sums, products and scatters stay in 32 bits until they are complete; contractions and attention note the
dtype of their operands in `precision`. Operations that only move or choose elements stay narrow.
"""
from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, make_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.attention import OPERANDS as ATTENTION
from lavax.ir.types import DTYPES, DType, bool_, float32, int32, uint32

_WIDE = {"float": float32, "int": int32, "uint": uint32}
# Elementwise operations whose result is one of their operands, or has no bits beyond theirs.
_CHOOSING = frozenset(
    (
        *("maximum", "minimum", "where", "and", "or", "xor", "stop_gradient", "barrier", "known_value"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "cast", "bitcast"),
    )
)
# Operations of other families that compute.
_COMPUTING = frozenset(
    (
        *("sum", "prod", "dot", "conv", "iota", "cumulative_sum", "cumulative_prod", "cumulative_logsumexp"),
        *("scatter_add", "scatter_multiply"),
        *ATTENTION,
    )
)
# Operations on bit patterns, and the kind of integer that they interpret them as.
_OF_BITS = {"shift_right_logical": "u", "shift_right_arithmetic": "i", "population_count": "u"}


def is_narrow(dtype: DType) -> bool:
    """Whether the dtype has 8 or 16 bits."""
    return dtype != bool_ and dtype.bits < 32


def wide_dtype(dtype: DType) -> DType:
    """The dtype that shaders compute in."""
    return _WIDE[dtype.kind] if is_narrow(dtype) else dtype


def wide_float(dtype: DType) -> DType:
    """The dtype that accumulates sums and products of `dtype`; integers wrap, so they can be cast back at any time."""
    return wide_dtype(dtype) if dtype.is_float else dtype


def is_computing(op: str) -> bool:
    """Whether the operation computes, and does not only move or choose elements."""
    return op in _COMPUTING or (OPERATIONS[op].family == "elementwise" and op not in _CHOOSING)


# The casts made so far, by operand and dtype: nodes that read the same value stay recognisable as such.
_Casts = dict[tuple[Node, DType], Node]


def _cast(node: Node, dtype: DType, casts: _Casts) -> Node:
    if node.dtype == dtype:
        return node
    if (node, dtype) not in casts:
        casts[node, dtype] = make_node("cast", (node,), {}, node.type.with_dtype(dtype), node.location)
    return casts[node, dtype]


def _widened(node: Node, operand: Node, casts: _Casts) -> Node:
    """An operand in the dtype in which the operation of `node` uses it."""
    if not is_narrow(operand.dtype):
        return operand
    if node.op in _OF_BITS:
        dtype = DTYPES[f"{_OF_BITS[node.op]}{operand.dtype.bits}"]
        if operand.dtype != dtype:
            operand = make_node("bitcast", (operand,), {}, operand.type.with_dtype(dtype), node.location)
    return _cast(operand, wide_dtype(operand.dtype), casts)


def _in_wide(node: Node, operands: tuple[Node, ...], casts: _Casts) -> Node:
    """The operation in 32 bits, with its result cast back."""
    wide = [_widened(node, operand, casts) for operand in operands]
    target = node.type.with_dtype(wide[0].dtype if node.op in _OF_BITS else wide_dtype(node.dtype))
    attrs, first = node.attrs, (*operands, node)[0].dtype
    if "precision" in OPERATIONS[node.op].defaults and first.is_float and is_narrow(first):
        attrs = {**attrs, "precision": first.name}
    return _cast(make_node(node.op, wide, attrs, target, node.location), node.dtype, casts)


def widen(graph: Graph) -> Graph:
    """The graph with no arithmetic in fewer than 32 bits; bodies of control flow stay as they are."""
    if not any(is_narrow(node.dtype) for node in (*graph.inputs, *graph.nodes) if node.dtype.kind != "tuple"):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    casts: _Casts = {}
    for node in graph.nodes:
        operands = tuple(found[operand] for operand in node.operands)
        narrow = any(is_narrow(part.dtype) for part in (node, *operands) if part.dtype.kind != "tuple")
        if narrow and is_computing(node.op):
            found[node] = _in_wide(node, operands, casts)
        else:
            found[node] = make_node(node.op, operands, node.attrs, node.type, node.location)
            if node.op == "cast":
                casts.setdefault((operands[0], node.dtype), found[node])
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])
