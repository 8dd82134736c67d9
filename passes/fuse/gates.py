"""Fusion of products of few rows in loops: those of one shape share a kernel, as the gates of a recurrent cell do.

What follows them element by element joins the kernel, whatever it costs: a turn of the loop waits for each dispatch
longer than for its arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.kernel_draft import flat_draft
from lavax.passes.target.kernel_limits import MOST_GATES


def compute_as_gate(fusion: Fusion, node: Node, needed: Sequence[Node]) -> None:
    """Computes a product in the kernel of others that it does not wait for, or in one of its own; `needed` is what it
    reads."""
    sizes = sizes_of(node)
    key = ("gates", node.shape, sizes.m, sizes.k)
    draft = fusion.joint_kernels.get(key)
    if draft is None or len(draft.heavy) == MOST_GATES or fusion.last_needed(needed) >= draft.order:
        draft = fusion.joint_kernels[key] = flat_draft("gates", fusion.next_order(needed), node.shape)
        fusion.open(draft, node, draft.full)
        return
    draft.arrays |= fusion.arrays_of(node.operands)
    draft.members[node] = draft.full
    draft.heavy.add(node)
    fusion.draft_of[node] = draft
