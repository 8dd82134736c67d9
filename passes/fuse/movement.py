"""Fusion of movement, constants, and casts that only widen: they float."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.fusion import REPETITION, Fusion
from lavax.passes.fuse.reasons import Reason


@dataclass(frozen=True)
class RepeatedBroadcasts:
    """When a small expensive value is stored, rather than computed for every element it is broadcast to.

    Chosen by `python -m benchmarks comparison --only layer-norm --only gpt-step`.
    """

    times: int = 16  # how often each element is repeated, at least
    cost: int = 8  # of an element, at least
    readers: int = 2  # of the broadcast in one kernel, as a rule: each further kernel computes the value again


_REPEATED_BROADCASTS = RepeatedBroadcasts()


def visit_movement(fusion: Fusion, node: Node) -> None:
    if node.op == "broadcast" and not fusion.bases_of(node.operands[0]) and _repeats_much(fusion, node):
        fusion.store(node.operands[0], Reason.REPEATED)
    bases = fusion.all_bases_of(node.operands)
    if bases:
        fusion.bases[node] = bases
    fusion.leave_floating(node)


def _repeats_much(fusion: Fusion, node: Node) -> bool:
    """Whether a broadcast would have a small expensive value computed very many times."""
    operand = node.operands[0]
    elements = node.type.size * max(fusion.siblings.readers(node) // _REPEATED_BROADCASTS.readers, 1)
    if fusion.is_stored(operand) or elements < _REPEATED_BROADCASTS.times * max(operand.type.size, 1):
        return False
    cost = sum(cost_of(part) for part in fusion.cone([operand])[0])
    return cost >= _REPEATED_BROADCASTS.cost and cost * elements >= REPETITION.work
