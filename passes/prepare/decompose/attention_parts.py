"""Splits the gradient of attention's queries into parts by keys. The kernel of the keys' gradient computes them too."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Graph, Node, with_operands
from lavax.passes.build.attention import joint_kernel_key
from lavax.passes.build.builder import build, reshape, slice_along, sum_over
from lavax.passes.build.rebuild import rebuilt
from lavax.passes.prepare.decompose.attention import RULES as ATTENTION
from lavax.passes.prepare.decompose.attention import has_kernel
from lavax.passes.prepare.decompose.joining import joined
from lavax.passes.target.target import Target


def with_query_parts(graph: Graph, target: Target) -> Graph:
    """The graph with gradients of queries as sums of parts, if it also computes the keys' gradients and the device
    has a kernel for both."""
    beside = {
        joint_kernel_key(node)
        for node in graph.nodes
        if node.op == "attention_key_gradient" and has_kernel(node)
    }
    if not beside:
        return graph

    def beside_those(node: Node, new: Node) -> Node:
        parts = _in_parts(node, target) if node.op == "attention_query_gradient" else None
        if parts is None or joint_kernel_key(parts) not in beside:
            return new
        return sum_over(with_operands(parts, new.operands), (parts.type.rank - 3,))

    return rebuilt(graph, beside_those)


def _in_parts(gradient: Node, target: Target) -> Node | None:
    block = target.attention.query_parts(gradient)
    return None if block is None else build("attention_query_parts", *gradient.operands, **gradient.attrs, block=block)


def _query_parts(node: Node, target: Target) -> Node:
    """The node itself if the device has a kernel for it, else the parts one by one."""
    attrs = {name: value for name, value in node.attrs.items() if name != "block"}
    block = node.attrs["block"]
    if target.attention.query_parts(build("attention_query_gradient", *node.operands, **attrs)) == block:
        return node
    query, key, value, cotangent, delta, logsumexp, *scores = node.operands
    found, rank, keys = [], key.type.rank, key.shape[-2]
    for start in range(0, keys, block):
        end = min(start + block, keys)
        of_keys = [slice_along(operand, rank - 2, start, end) for operand in (key, value)]
        of_scores = [slice_along(operand, rank - 1, start, end) for operand in scores]
        moved = attrs | {name: attrs[name] - start for name in ("lowest", "highest")}
        operands = (query, *of_keys, cotangent, delta, logsumexp, *of_scores)
        part = ATTENTION["attention_query_gradient"](build("attention_query_gradient", *operands, **moved))
        found.append(reshape(part, (*part.shape[:-2], 1, *part.shape[-2:])))
    return joined(found, rank - 2)


RULES: dict[str, Callable[[Node, Target], Node]] = {"attention_query_parts": _query_parts}
