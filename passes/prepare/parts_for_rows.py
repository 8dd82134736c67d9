"""Products with long sums in parts that the kernel of the next rows adds, such as a norm's of the residual stream.

A result of few tiles leaves processors to one tile each, which waits for every step of its sum. Parts of the sum are as
many tiles more, and two tiles of a processor wait in turn. Written in full precision and read once more they cost
memory traffic, but no kernel: a row's kernel, which waits for the product anyway, adds them (passes/build/parts.py).
Nothing is gained where other products of the same level fill the device, as weights' gradients do beside the
derivatives that the next layer waits for.
"""

from __future__ import annotations

from collections import Counter

from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.contraction_geometry import in_parts, sizes_of
from lavax.passes.build.parts import rows_ahead
from lavax.passes.build.rebuild import rebuilt
from lavax.passes.target.target import Target

_MAPS = frozenset({"elementwise", "movement"})


def with_parts_for_rows(graph: Graph, target: Target) -> Graph:
    """The graph with such products in as many parts as are fastest."""
    users, beside, outputs = graph.users, _products_beside(graph), frozenset(graph.outputs)
    parts_of = dict[Node, int]()
    for node, others in beside.items():
        parts = target.products.parts_for_rows(node, others)
        if parts > 1 and node not in outputs and rows_ahead(node, users) is not None:
            parts_of[node] = parts
    if not parts_of:
        return graph
    return rebuilt(graph, lambda node, new: in_parts(new, parts_of[node]) if node in parts_of else new)


def _products_beside(graph: Graph) -> dict[Node, int]:
    """For each contraction, how many products others compute that wait for as many kernels, about."""
    waits: dict[Node, int] = dict.fromkeys(graph.inputs, 0)
    for node in graph.nodes:
        own = OPERATIONS[node.op].family not in _MAPS
        waits[node] = own + max((waits[operand] for operand in node.operands), default=0)
    products = {node: _products(node) for node in graph.nodes if node.op == "dot"}
    together = Counter[int]()
    for node, count in products.items():
        together[waits[node]] += count
    return {node: together[waits[node]] - count for node, count in products.items()}


def _products(dot: Node) -> int:
    sizes = sizes_of(dot)
    return sizes.b * sizes.m * sizes.n * sizes.k
