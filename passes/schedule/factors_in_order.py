"""Scans that workgroups run slice by slice, with factors transposed before the first turn.

In each turn a workgroup reads the whole factor of a product that is the same in all turns. Its invocations have
neighbouring columns, so they read neighbours together only if these lie beside each other in memory, and not along the
sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lavax.ir.graph import INPUT, Graph, Node, further_inputs, graph_of, make_node, with_operands
from lavax.ir.ops.contraction import free_axes


def with_factors_in_order(graph: Graph, slices: Callable[[Node], int]) -> Graph:
    """The graph with such scans; `slices` says of a scan whether workgroups run it."""
    if not any(node.op == "scan" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        found[node] = _in_order(built, slices) if node.op == "scan" else built
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


_Factor = tuple[Node, tuple[int, ...]]  # an input of a body, and the order of axes in which products read it best


def _in_order(scan: Node, slices: Callable[[Node], int]) -> Node:
    """The scan with further operands: its factors in order."""
    body, operands = scan.attrs["body"], dict(zip(scan.attrs["body"].inputs, scan.operands, strict=True))
    unchanging = {*body.inputs[scan.attrs["carries"] + scan.attrs["sequences"] :]}
    factors = dict.fromkeys(
        factor
        for node in body.nodes
        for factor in _factors_of(node)
        if factor is not None and factor[0] in unchanging
    )
    if not factors:
        return scan
    moved = [make_node("transpose", (operands[node],), {"axes": order}, None, scan.location) for node, order in factors]
    further = further_inputs("moved", (each.type for each in moved), body.inputs)
    inputs = dict(zip(factors, further, strict=True))
    found: dict[Node, Node] = {node: node for node in body.inputs}
    for node in body.nodes:
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        found[node] = _reading(built, node, inputs) if node.op == "dot" else built
    within = graph_of((*body.inputs, *further), [found[output] for output in body.outputs])
    changed = make_node("scan", (*scan.operands, *moved), {**scan.attrs, "body": within}, scan.type, scan.location)
    return changed if slices(changed) else scan


def _factors_of(node: Node) -> tuple[_Factor | None, ...]:
    """What is to be read of each side of a product instead, if its neighbours lie along the sum and not beside."""
    return tuple(_factor(node, side) for side in range(2)) if node.op == "dot" else ()


def _factor(dot: Node, side: int) -> _Factor | None:
    operand, batch, contract = dot.operands[side], dot.attrs["batch"][side], dot.attrs["contract"][side]
    free = free_axes(operand.type, batch, contract)
    if operand.op != INPUT or not free or not contract or operand.type.rank - 1 not in contract:
        return None
    return operand, (*batch, *contract, *free)


def _reading(built: Node, node: Node, inputs: Mapping[_Factor, Node]) -> Node:
    """A product, built of a body's `node`, that reads what is in order: batched axes first, then those of the sum."""
    operands, attrs = list(built.operands), dict(built.attrs)
    for side, factor in enumerate(_factors_of(node)):
        if factor is None or factor not in inputs:
            continue
        operands[side], first = inputs[factor], 0
        for name in ("batch", "contract"):
            axes = list(attrs[name])
            count = len(axes[side])
            axes[side] = tuple(range(first, first + count))
            attrs[name], first = tuple(axes), first + count
    return make_node("dot", operands, attrs, None, node.location)
