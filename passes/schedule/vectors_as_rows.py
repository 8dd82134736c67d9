"""Scans whose products of a vector and a matrix are products of one row, as in a recurrent network of one sequence.

Simplification takes axes of one element from products. With its row a product in a loop is one of gates
(emit/gates/): it shares a kernel with all that follows it, where sums of vectors and what follows are two.
"""

from __future__ import annotations

from collections.abc import Mapping

from lavax.ir.graph import Graph, Node, graph_of, make_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import tuple_of
from lavax.passes.build.builder import reshaped
from lavax.passes.build.control_flow import item, parts_of
from lavax.passes.schedule.unrolled_scan import may_be_recorded
from lavax.passes.target.target import Loops

# Operations that have rows' first axis, too, and what they say of it.
_FURTHER_AXIS: Mapping[str, Mapping[str, int]] = {
    "concatenate": {},
    "pad": {"low": 0, "high": 0, "interior": 0},
    "slice": {"start": 0, "limit": 1, "stride": 1},
}


def with_vectors_as_rows(graph: Graph, loops: Loops) -> Graph:
    """The graph with such scans, if their turns are recorded and all products in them are ones of gates then."""
    if not any(node.op == "scan" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        if node.op == "item" and found[node.operands[0]] is not node.operands[0]:
            whole = item(found[node.operands[0]], node.attrs["index"])
            found[node] = reshaped(whole, node.shape)
            continue
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        if node.op == "scan" and may_be_recorded(built, loops) and not loops.slices(built):
            built = _of_rows(built, loops) or built
        found[node] = built
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _of_rows(scan: Node, loops: Loops) -> Node | None:
    """The scan with products of rows; None if it has none, or other ones."""
    body, carries = scan.attrs["body"], scan.attrs["carries"]
    if not any(map(_vector_of, body.nodes)):
        return None
    found: dict[Node, Node] = {node: node for node in body.inputs}
    for node in body.nodes:
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        if _vector_of(node):
            built = _product_of_row(built)
        elif node.op == "reshape":
            built = reshaped(_source(built), node.shape)
        elif any(_is_row(operand) for operand in built.operands):
            built = _of_rows_too(built)
        found[node] = built
        products = [built.operands[0]] if _vector_of(node) else [built] if node.op == "dot" else []
        if not all(map(loops.are_gates, products)):
            return None
    stacked = [_source(found[output]) for output in body.outputs[carries:]]
    stacked = [row if row.shape[:1] == (1,) else found[output]
               for row, output in zip(stacked, body.outputs[carries:], strict=True)]  # fmt: skip
    within = graph_of(body.inputs, [*(found[output] for output in body.outputs[:carries]), *stacked])
    length = scan.attrs["length"]
    types = [*parts_of(scan)[:carries], *(row.type.with_shape((length, *row.shape)) for row in stacked)]
    return make_node("scan", scan.operands, {**scan.attrs, "body": within}, tuple_of(types), scan.location)


def _vector_of(node: Node) -> tuple[int, ...]:
    """The side of an operand that is a vector, along which a product with a matrix sums; nothing for other nodes."""
    if node.op != "dot" or node.attrs["batch"] != ((), ()) or node.attrs["contract"] == ((), ()):
        return ()
    ranks = [operand.type.rank for operand in node.operands]
    return (ranks.index(1),) if sorted(ranks) == [1, 2] else ()


def _product_of_row(dot: Node) -> Node:
    (side,) = _vector_of(dot)
    vector, matrix = dot.operands[side], dot.operands[1 - side]
    row = reshaped(_source(vector), (1, *vector.shape))
    attrs = {**dot.attrs, "contract": ((1,), dot.attrs["contract"][1 - side])}
    return reshaped(make_node("dot", (row, matrix), attrs, None, dot.location), dot.shape)


def _is_row(node: Node) -> bool:
    """Whether a value is a row without its axis of one element."""
    return node.op == "reshape" and node.operands[0].shape == (1, *node.shape)


def _of_rows_too(node: Node) -> Node:
    """What is computed from rows without their axis, computed with it."""
    attrs = dict(node.attrs)
    if OPERATIONS[node.op].family != "elementwise" and node.op not in _FURTHER_AXIS:
        return node
    for name, value in _FURTHER_AXIS.get(node.op, {}).items():
        attrs[name] = (value, *attrs[name])
    if node.op == "concatenate":
        attrs["axis"] += 1
    rows = [reshaped(_source(operand), (1, *operand.shape)) for operand in node.operands]
    whole = make_node(node.op, rows, attrs, node.type.with_shape((1, *node.shape)), node.location)
    return reshaped(whole, node.shape)


def _source(node: Node) -> Node:
    """What is reshaped."""
    while node.op == "reshape":
        (node,) = node.operands
    return node
