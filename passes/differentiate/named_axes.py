"""Gradients of reductions over a named axis. The results of all batch elements contribute to the cotangent of each
element."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import build, cast, gather, where, zeros
from lavax.passes.differentiate.gradient_rule import GradientRule, by_operand
from lavax.passes.differentiate.reduction import reaches, share_of


def _over(op: str, x: Node, node: Node) -> Node:
    return build(op, x, name=node.attrs["name"])


def _sum(node: Node, g: Node) -> Node:
    return _over("axis_sum", g, node)


def _extremum(node: Node, g: Node) -> Node:
    """Elements that are equal to the extremum share its gradient equally. Where it is NaN, so are all gradients."""
    (x,) = node.operands
    tied = reaches(x, node, node)
    share = share_of(node, _over("axis_sum", g, node), _over("axis_sum", cast(tied, g.dtype), node))
    return where(tied, share, zeros(x.type))


def _gather(node: Node, g: Node) -> Node:
    index = build("axis_index", name=node.attrs["name"])
    return gather(_over("axis_sum", g, node), [index], (0,))


RULES: dict[str, GradientRule] = {
    "axis_sum": by_operand(_sum),
    "axis_max": by_operand(_extremum),
    "axis_min": by_operand(_extremum),
    "axis_gather": by_operand(_gather),
}
