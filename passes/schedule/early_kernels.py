"""Kernels of attention that a graph's program is likely to have, found before the graph is prepared and fused.

Drivers of GPUs compile nothing longer, so their shaders are best begun at once. What such a kernel computes follows
most often from its surroundings: what its operands are made of, from the nearest products, sums and routines on. So the
surroundings of one layer of those that are alike are prepared and fused alone. Where the whole graph has other kernels,
shaders were written for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

from lavax.ir.graph import INPUT, Graph, Node, graph_of, input_node, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.attention import OPERANDS
from lavax.passes.fuse.extract import extract
from lavax.passes.fuse.fuse import fuse
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.target.target import Target

_LOCAL = ("elementwise", "movement", "source")
_FUSED_WITH = ("contraction", "reduction")  # what such nodes' values are made of may join their kernels


def early_kernels(graph: Graph, target: Target) -> list[Kernel]:
    """Kernels that a simplified graph's program is likely to have, if they compute attention or its derivatives."""
    joint: dict[Hashable, list[Node]] = {}
    for node in graph.nodes:
        if node.op in OPERANDS:
            joint.setdefault(_joint_key(node), []).append(node)
    alike: dict[Hashable, list[list[Node]]] = {}
    for nodes in joint.values():
        alike.setdefault(tuple(map(_likeness, nodes)), []).append(nodes)
    return [kernel for layers in alike.values() for kernel in _kernels(layers[len(layers) // 2], target)]


def _joint_key(node: Node) -> Hashable:
    """Equal for nodes that one kernel may compute, or that read from each other's kernels: the attention of one layer,
    or its derivatives."""
    query, key, *rest = node.operands
    cotangent = rest[OPERANDS[node.op].index("cotangent") - 2] if "cotangent" in OPERANDS[node.op] else None
    return query, key, cotangent


def _likeness(node: Node) -> Hashable:
    """Equal for nodes of layers that are alike."""
    operands = [_likeness(operand) if _moves(operand) else operand.type for operand in node.operands]
    return node.op, tuple(node.attrs.items()), node.type, *operands


def _moves(node: Node) -> bool:
    return node.op != INPUT and OPERATIONS[node.op].family == "movement"


def _kernels(nodes: Collection[Node], target: Target) -> Iterable[Kernel]:
    prepared = prepare(_surroundings(nodes), target)
    pieces = extract(fuse(prepared, target), prepared.outputs)
    return [piece.kernel for piece in pieces if any(node.op in OPERANDS for node in piece.kernel.graph.nodes)]


def _surroundings(nodes: Collection[Node]) -> Graph:
    """A graph of the nodes, and of what they are computed from nearby; all else is an input."""
    found: dict[Node, Node] = {}
    inputs: list[Node] = []
    stack = list(nodes)
    while stack:
        node = stack[-1]
        family = "source" if node.op == INPUT else OPERATIONS[node.op].family
        is_near = node in nodes or family in _LOCAL
        missing = [operand for operand in node.operands if operand not in found] if is_near else ()
        if missing:
            stack += missing
            continue
        stack.pop()
        if node in found:
            continue
        if is_near and node.op != INPUT:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
            continue
        types = [operand.type for operand in node.operands] if family in _FUSED_WITH else [node.type]
        given = [input_node(f"a{len(inputs) + number}", type) for number, type in enumerate(types)]
        inputs += given
        found[node] = with_operands(node, tuple(given)) if family in _FUSED_WITH else given[0]
    return graph_of(inputs, [found[node] for node in nodes])
