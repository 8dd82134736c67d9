"""Fusion of reductions: they join a row kernel over the same rows, or open one."""

from __future__ import annotations

from collections.abc import Collection

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.parts import rows_ahead
from lavax.passes.fuse.coordinates import candidates, covers, is_legal, is_whole_row
from lavax.passes.fuse.costs import KERNEL_LIMITS
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import KernelDraft, row_draft
from lavax.passes.fuse.reasons import Reason
from lavax.passes.fuse.recompute import Recomputation, recomputation_instead


@dataclass(frozen=True)
class RowCandidates:
    """The existing row kernels to try for a reduction that reads none of their values: the latest few.

    A bound on the search alone. Checked by `python -m benchmarks compile-time`.
    """

    latest: int = 4


_ROW_CANDIDATES = RowCandidates()


def visit_reduction(fusion: Fusion, node: Node) -> None:
    (operand,) = node.operands
    axes = _reduced_axes(node)
    bases = fusion.bases_of(operand)
    for draft in _rows_to_join(fusion, operand, axes, bases):
        refusal = _join(fusion, node, draft, axes)
        if refusal is None:
            fusion.settle_others(node, bases, draft)
            return
        fusion.refusals[node, draft] = refusal
    worth = fusion.target.fusion.worth_reducing_again
    found = recomputation_instead(node, bases, fusion.draft_of, fusion.siblings, fusion.returned.__contains__, worth)
    if found is not None:
        _reduce_recomputed(fusion, node, found)
        return
    fusion.settle(operand, node, Reason.WHOLE_ROWS)
    _open_rows(fusion, node)


def _reduced_axes(node: Node) -> tuple[int, ...]:
    return node.attrs["axes"] if "axes" in node.attrs else (node.attrs["axis"],)


def _open_rows(fusion: Fusion, node: Node) -> KernelDraft:
    (operand,) = node.operands
    axes = _reduced_axes(node)
    draft = row_draft(fusion.next_order([operand]), operand.shape, axes)
    fusion.open(draft, node, draft.domain.outer_variables)
    fusion.rows.setdefault((operand.shape, axes), []).append(draft)
    return draft


def add_parts_in_rows(fusion: Fusion, node: Node) -> bool:
    """Adds the parts of a contraction in the kernel of the rows that are reduced next, which is opened here."""
    rows = rows_ahead(node, fusion.readers.users)
    if rows is None:
        return False
    for operand in node.operands:
        fusion.settle(operand, node, Reason.WHOLE_ROWS)
    order = fusion.next_order(node.operands)
    opened = fusion.rows.setdefault((rows.shape, rows.axes), [])
    waiting = [draft for draft in opened[-1:] if not draft.heavy and draft.order[0] == order[0]]
    draft = waiting[0] if waiting else row_draft(order, rows.shape, rows.axes)
    arrays = draft.arrays | fusion.arrays_of(node.operands)
    if fusion.add_member(node, draft) is not None:
        return False
    draft.arrays = arrays
    fusion.add_work(draft, node)
    if not waiting:
        fusion.all_drafts.append(draft)
        opened.append(draft)
    return True


def _reduce_recomputed(fusion: Fusion, node: Node, found: Recomputation) -> None:
    """Reduces values of another kernel that this one recomputes; joins reductions that read the same arrays."""
    for array in found.arrays:
        if array in fusion.draft_of:
            fusion.draft_of[array].results[array] = None
    axes = _reduced_axes(node)
    for draft in _recent_rows(fusion, node.operands[0].shape, axes, found.arrays):
        if _join(fusion, node, draft, axes) is None:
            break
    else:
        draft = _open_rows(fusion, node)
    draft.recomputed |= found.nodes
    draft.arrays = (draft.arrays - found.nodes) | set(found.arrays)


def _recent_rows(
    fusion: Fusion, shape: tuple[int, ...], axes: tuple[int, ...], arrays: Collection[Node]
) -> list[KernelDraft]:
    """The latest few kernels over such rows that read one of the arrays; any of them if there are no arrays."""
    recent = fusion.rows.get((shape, axes), [])[-_ROW_CANDIDATES.latest :]
    return [draft for draft in reversed(recent) if not arrays or not draft.arrays.isdisjoint(arrays)]


def _rows_to_join(
    fusion: Fusion, operand: Node, axes: tuple[int, ...], bases: tuple[Node, ...]
) -> list[KernelDraft]:
    if bases:
        last = fusion.last_draft(bases)
        return [last] if last.kind == "row" else []
    return _recent_rows(fusion, operand.shape, axes, fusion.arrays_of([operand]))


def _join(fusion: Fusion, node: Node, draft: KernelDraft, axes: tuple[int, ...]) -> Reason | None:
    """Computes a reduction in a row kernel, or says why not."""
    (operand,) = node.operands
    if fusion.last_needed([operand], draft) >= draft.order:
        return Reason.NEEDS_LATER
    if fusion.is_full(draft, node):
        return Reason.NODES
    arrays = fusion.arrays_with(draft, [operand])
    if len(arrays) + len(draft.results) + 1 > KERNEL_LIMITS.arrays:
        return Reason.ARRAYS
    refusal = Reason.OTHER_ROWS
    for at in [draft.members[operand]] if operand in draft.members else candidates(operand, draft):
        outer = tuple(index for axis, index in enumerate(at) if axis not in axes)
        if not is_whole_row([at[axis] for axis in axes], outer, draft) or not covers(node, outer, draft):
            continue
        if operand in draft.members or is_legal(operand, at, draft, fusion.is_made_of, fusion.draft_of):
            draft.members[node] = outer
            draft.heavy.add(node)
            draft.arrays = arrays
            fusion.add_work(draft, node)
            fusion.draft_of[node] = draft
            return None
        refusal = Reason.OTHER_ELEMENTS
    return refusal
