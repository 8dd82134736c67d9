"""Fusion of branches and loops: each is a kernel by itself, which writes the results that are taken out of it."""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import flat_draft
from lavax.passes.fuse.reasons import Reason


def visit_control_flow(fusion: Fusion, node: Node) -> None:
    for operand in node.operands:
        fusion.store(operand, Reason.CONTROL_FLOW)
    fusion.open(flat_draft("region", fusion.next_order(node.operands), ()), node, ())


def visit_item(fusion: Fusion, node: Node) -> None:
    """One result of a branch or loop: its kernel writes it."""
    draft = fusion.draft_of[node.operands[0]]
    fusion.draft_of[node] = draft
    draft.results[node] = None
