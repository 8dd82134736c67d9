"""Removes attention's batch axes of extent 1, so that nodes that share a kernel have operands of the same shape."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.ops.attention import OPERANDS
from lavax.passes.build.attention import batch_reshaped
from lavax.passes.build.builder import reshape
from lavax.passes.build.matching import without_units as proper_extents
from lavax.passes.simplify.rewriting import RewriteRule


def without_units(node: Node) -> Node | None:
    """Leaves batch axes of extent 1 to a reshape of the result."""
    batch = node.operands[0].shape[:-2]
    return reshape(batch_reshaped(node, proper_extents(batch)), node.shape) if 1 in batch else None


RULES: dict[str, tuple[RewriteRule, ...]] = dict.fromkeys(OPERANDS, (without_units,))
