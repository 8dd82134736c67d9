"""Scans whose products are the same in all turns but for a few rows, with factors transposed before the first turn.

In each turn of a scan that workgroups run slice by slice, a workgroup reads the whole factor of a product. Its
invocations have neighbouring columns, so they read neighbours together only if these lie beside each other in memory,
and not along the sum. Where a kernel computes the gates of a cell, neighbouring invocations have neighbouring terms of
a sum, so it is the other way round: a gradient with 2,048 terms for 4 columns took an H100 25 µs a turn, of which the
factor's scattered lines were two thirds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lavax.ir.graph import INPUT, Graph, Node, further_inputs, graph_of, make_node, with_operands
from lavax.ir.ops.contraction import free_axes
from lavax.passes.schedule.unrolled_scan import may_be_recorded
from lavax.passes.target.target import Loops


def with_factors_along_sums(scan: Node, loops: Loops) -> Node:
    """The scan with the matrices of gates as right factors whose neighbours lie along the sum."""
    if not may_be_recorded(scan, loops):
        return scan

    def factor_of(dot: Node) -> tuple[_Factor | None, ...]:
        right, summed = dot.operands[1], dot.attrs["contract"][1]
        if not loops.are_gates(dot) or right.op != INPUT or len(summed) != 1 or summed[0] == right.type.rank - 1:
            return None, None
        (along,) = summed
        return None, (right, (*(axis for axis in range(right.type.rank) if axis != along), along))

    def reading(built: Node, dot: Node, inputs: Mapping[_Factor, Node]) -> Node:
        _, factor = factor_of(dot)
        if factor is None or factor not in inputs:
            return built
        contract = built.attrs["contract"][0], (built.operands[1].type.rank - 1,)
        operands = built.operands[0], inputs[factor]
        return make_node("dot", operands, {**built.attrs, "contract": contract}, None, dot.location)

    return _with_moved_factors(scan, factor_of, reading)


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
    changed = _with_moved_factors(scan, _factors_of, _reading)
    return changed if changed is not scan and slices(changed) else scan


def _with_moved_factors(
    scan: Node,
    factors_of: Callable[[Node], tuple[_Factor | None, ...]],
    reading: Callable[[Node, Node, Mapping[_Factor, Node]], Node],
) -> Node:
    """The scan with transposed factors, which are the same in all turns, as further operands; itself if it has none."""
    body, operands = scan.attrs["body"], dict(zip(scan.attrs["body"].inputs, scan.operands, strict=True))
    unchanging = {*body.inputs[scan.attrs["carries"] + scan.attrs["sequences"] :]}
    factors = dict.fromkeys(
        factor
        for node in body.nodes
        if node.op == "dot"
        for factor in factors_of(node)
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
        found[node] = reading(built, node, inputs) if node.op == "dot" else built
    within = graph_of((*body.inputs, *further), [found[output] for output in body.outputs])
    return make_node("scan", (*scan.operands, *moved), {**scan.attrs, "body": within}, scan.type, scan.location)


def _factors_of(node: Node) -> tuple[_Factor | None, ...]:
    """What is to be read of each side of a product instead, if its neighbours lie along the sum and not beside."""
    return tuple(_factor(node, side) for side in range(2))


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
