"""Fusion of elementwise operations: they join the last kernel that they read from, or float."""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.parts import is_sum_of_parts
from lavax.passes.fuse.contraction import store_gathered, unsuited_epilogue
from lavax.passes.fuse.costs import KERNEL_LIMITS, cost_of
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import KernelDraft
from lavax.passes.fuse.movement import visit_movement
from lavax.passes.fuse.reasons import Reason
from lavax.passes.fuse.reduction import add_parts_in_rows
from lavax.passes.numerics.narrow_movement import is_widening


def visit_elementwise(fusion: Fusion, node: Node) -> None:
    if node.op == "add" and is_sum_of_parts(node) and add_parts_in_rows(fusion, node):
        return
    bases = fusion.all_bases_of(node.operands)
    if bases:
        draft = fusion.last_draft(bases)
        refusal = _join(fusion, node, draft)
        if refusal is None:
            fusion.settle_others(node, bases, draft)
            return
        fusion.refusals[node, draft] = refusal
        for operand in node.operands:
            fusion.settle(operand, node, Reason.NOT_LAST)
    fusion.leave_floating(node)


def visit_cast(fusion: Fusion, node: Node) -> None:
    """A cast that widens is left to readers: memory keeps the narrow numbers."""
    visit = visit_movement if is_widening(node) else visit_elementwise
    visit(fusion, node)


def _join(fusion: Fusion, node: Node, draft: KernelDraft) -> Reason | None:
    """Computes an elementwise node in a kernel it reads from, or says why that is not allowed or does not pay."""
    if fusion.last_needed(node.operands, draft) >= draft.order:
        return Reason.NEEDS_LATER
    if draft.kind == "contract":
        store_gathered(fusion, node, draft)
    if fusion.is_full(draft, node):
        return Reason.NODES
    arrays = _arrays_with(fusion, node, draft)
    if len(arrays) + len(draft.results) + 1 > KERNEL_LIMITS.arrays:
        return Reason.ARRAYS
    cost = draft.cost + cost_of(node)
    refusal = None
    if draft.kind == "contract" and not _is_written_twice(fusion, node, draft):
        refusal = unsuited_epilogue(fusion, node, draft, cost, len(arrays))
    refusal = refusal or fusion.add_member(node, draft)
    if refusal is None:
        draft.cost, draft.arrays = cost, arrays
        draft.cost_at[node] = cost
        fusion.add_work(draft, node)
    return refusal


def _arrays_with(fusion: Fusion, node: Node, draft: KernelDraft) -> set[Node]:
    """The arrays that a kernel reads if it computes a node as well.

    If they seem too many for an epilogue they are found anew: values may have been stored since it was noted what those
    that are made of them read.
    """
    arrays = fusion.arrays_with(draft, node.operands)
    if draft.kind != "contract" or len(arrays) <= fusion.target.fusion.epilogue_arrays:
        return arrays
    return set(fusion.cone([*draft.members, *node.operands], draft)[1])


def _is_written_twice(fusion: Fusion, node: Node, draft: KernelDraft) -> bool:
    """Whether a node is a copy of what a kernel computes, both of which are returned, such as a carry and its row."""
    if node.op != "cast" or not fusion.target.loops.write_copies:
        return False
    (source,) = node.operands
    return node.type == source.type and fusion.draft_of.get(source) is draft and {node, source} <= fusion.returned
