"""Fusion of movement, constants, and casts that only widen: they float."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.fusion import REPETITION, Fusion
from lavax.passes.fuse.reasons import Reason


@dataclass(frozen=True)
class RepeatedBroadcasts:
    """When a small expensive value is stored, rather than computed for every element it is broadcast to, or for every
    element that a gather takes from the place that it is.

    Chosen by `python -m benchmarks comparison --only layer-norm --only gpt-step`.
    """

    times: int = 16  # how often each element is repeated, at least
    cost: int = 8  # of an element, at least
    readers: int = 2  # of the broadcast in one kernel, as a rule: each further kernel computes the value again


_REPEATED_BROADCASTS = RepeatedBroadcasts()


def visit_movement(fusion: Fusion, node: Node) -> None:
    for operand, cost in _repeated_operands(node, fusion.target.fusion.stores_places):
        if not fusion.bases_of(operand) and _repeats_much(fusion, node, operand, cost):
            fusion.store(operand, Reason.REPEATED)
    bases = fusion.all_bases_of(node.operands)
    if bases:
        fusion.bases[node] = bases
    fusion.leave_floating(node)


def _repeated_operands(node: Node, of_gathers: bool) -> list[tuple[Node, int]]:
    """The operands of which a node reads each element for several of its own, and what such an element costs at least
    for it to be stored."""
    if node.op == "broadcast":
        return [(node.operands[0], _REPEATED_BROADCASTS.cost)]
    is_gather = of_gathers and node.op == "gather"
    return [(indices, REPETITION.cost) for indices in node.operands[1:]] if is_gather else []


def _repeats_much(fusion: Fusion, node: Node, operand: Node, least: int) -> bool:
    """Whether a small expensive value would be computed very many times."""
    elements = node.type.size * max(fusion.siblings.readers(node) // _REPEATED_BROADCASTS.readers, 1)
    if fusion.is_stored(operand) or elements < _REPEATED_BROADCASTS.times * max(operand.type.size, 1):
        return False
    cost = sum(cost_of(part) for part in fusion.cone([operand])[0])
    return cost >= least and cost * elements >= REPETITION.work
