"""Convolutions of operands with zeros in between that have a better form than phases."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import located, set_location
from lavax.passes.prepare.decompose.few_channels import contributions_summed, writes_few_channels
from lavax.passes.prepare.decompose.reversed_windows import columns_of, has_large_window, with_roles_reversed
from lavax.passes.target.target import Target

# On a CPU driver, of more columns, phases have tiles that are as well filled. Processor time of gradients of weights
# [in, out, 4, 4] with reversed roles and in phases: 32 × 3 5.8 and 9.8 ms, 128 × 64 both 15.2, 64 × 32 11.0 and 7.5.
_MOST_COLUMNS = 4


def with_forms_of_spread_convolutions(graph: Graph, target: Target) -> Graph:
    """The graph in which these have other forms, before what follows them is laid out."""
    stages = target.products.stages_operands
    if not any(node.op == "conv" and any(node.attrs["interior"]) for node in graph.nodes):
        return graph
    found = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            found[node] = _form_of(with_operands(node, tuple([found[operand] for operand in node.operands])), stages)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _form_of(node: Node, stages: bool) -> Node:
    if has_large_window(node) and (stages or columns_of(node) <= _MOST_COLUMNS):
        return with_roles_reversed(node)
    return contributions_summed(node) if stages and writes_few_channels(node) else node
