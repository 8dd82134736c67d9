"""Results of loops that never turn, and products that loops need not wait for."""
from __future__ import annotations

from collections.abc import Mapping

from lavax.ir.graph import Node
from lavax.passes.simplify.products_ahead import with_products_ahead
from lavax.passes.simplify.rewriting import RewriteRule


def _result_of_no_turns(node: Node) -> Node | None:
    """What a scan of length 0 carries is what it was given. (Its other results have no elements: `folding.empty`.)"""
    (loop,) = node.operands
    index: int = node.attrs["index"]
    if loop.op != "scan" or loop.attrs["length"] or index >= loop.attrs["carries"]:
        return None
    return loop.operands[index]


RULES: Mapping[str, tuple[RewriteRule, ...]] = {"item": (_result_of_no_turns,), "scan": (with_products_ahead,)}
