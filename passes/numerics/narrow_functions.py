"""Marks functions whose results are rounded to 16 bits, of which devices may compute a short form.

A function of float32 is exact to some 22 bits, at the cost of long polynomials. bfloat16 keeps eight of these and
float16 eleven, so where all that reads a result adds and multiplies it element by element and is rounded then, short
forms lose nothing that is seen (shaders_glsl/narrow_functions.glsl). Reductions, products and stored float32 values
keep the exact forms.
"""
from __future__ import annotations

from lavax.ir.graph import Graph, Node, make_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import float32
from lavax.passes.build.rebuild import rebuilt
from lavax.passes.target.target import Target

_NARROW = "narrow"  # the attribute of operations that have a short form
# What may stand between a function and the rounding: the result is about as far off as its operands are, relative to
# the largest of these.
_FOLLOWING = frozenset(("add", "subtract", "multiply", "negate", "maximum", "minimum", "where", "stop_gradient"))


def with_narrow_functions(graph: Graph, target: Target) -> Graph:
    """The graph in which functions of float32 that only lead to roundings to 16 bits are marked."""
    if not target.narrow_functions:
        return graph
    rounded = dict.fromkeys(graph.outputs, False)
    for node in reversed(graph.nodes):
        rounded.setdefault(node, _is_rounded(node, graph, rounded))
    marked = {node for node, is_rounded in rounded.items() if is_rounded and _NARROW in node.attrs}
    if not marked:
        return graph

    def with_mark(node: Node, new: Node) -> Node:
        if node not in marked:
            return new
        return make_node(new.op, new.operands, {**new.attrs, _NARROW: True}, new.type, new.location)

    return rebuilt(graph, with_mark)


def _is_rounded(node: Node, graph: Graph, rounded: dict[Node, bool]) -> bool:
    """Whether all that reads a value is rounded to 16 bits before anything else reads it."""
    readers = graph.users.get(node, ())
    return node.dtype == float32 and bool(readers) and all(_leads_to_rounding(reader, rounded) for reader in readers)


def _leads_to_rounding(reader: Node, rounded: dict[Node, bool]) -> bool:
    if reader.op == "cast":
        return reader.dtype.is_float and reader.dtype.bits == 16
    is_between = reader.op in _FOLLOWING or OPERATIONS[reader.op].family == "movement"
    return is_between and rounded[reader]
