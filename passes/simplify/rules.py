"""The table of rewrite rules: for each operation, the rules to try, in order."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.operation import OPERATIONS
from lavax.passes.simplify import (
    arithmetic,
    attention,
    centred_sums,
    complex_numbers,
    contraction,
    control_flow,
    folding,
    indexing,
    joined_pads,
    logic,
    movement,
    reduction,
    sinking,
    window,
)
from lavax.passes.simplify.rewriting import RewriteRule, RewriteRules

# Rules for every operation of a family, tried after `folding.empty` and before the operation's own.
_OF_FAMILY: dict[str, tuple[RewriteRule, ...]] = {
    "source": (),
    "elementwise": (folding.elementwise,),
    "movement": (),
    "reduction": (),
    "indexing": (),
    "contraction": (),
    "routine": (),
    "region": (),
    "axis": (),
    "lowered": (),
}
# Rules for every operation of a family that are tried last.
_LAST_OF_FAMILY: dict[str, tuple[RewriteRule, ...]] = {"elementwise": sinking.RULES}

_OWN: dict[str, tuple[RewriteRule, ...]] = {
    **arithmetic.RULES,
    **logic.RULES,
    **movement.RULES,
    **reduction.RULES,
    **indexing.RULES,
    **contraction.RULES,
    **window.RULES,
    **attention.RULES,
    **complex_numbers.RULES,
    **control_flow.RULES,
    "add": (*arithmetic.RULES["add"], *joined_pads.RULES["add"]),
    "dot": (*contraction.RULES["dot"], *joined_pads.RULES["dot"]),
    "sum": (*reduction.RULES["sum"], *centred_sums.RULES["sum"]),
}


def _rules_of(name: str) -> tuple[RewriteRule, ...]:
    family = OPERATIONS[name].family
    return (folding.empty, *_OF_FAMILY[family], *_OWN.get(name, ()), *_LAST_OF_FAMILY.get(family, ()))


def _pass_through(node: Node) -> Node:
    return node.operands[0]


def _pass_second(node: Node) -> Node:
    return node.operands[1]


RULES: RewriteRules = {name: _rules_of(name) for name in OPERATIONS}
MERGING: RewriteRules = {
    "transpose": (contraction.transpose_of_dot,),
    **reduction.MERGING,
    **window.MERGING,
    "sum": (*reduction.MERGING["sum"], contraction.sum_over_batch),
}
# For graphs that will not be differentiated any more.
RULES_WITHOUT_GRADIENTS: RewriteRules = {**RULES, "stop_gradient": (_pass_through,), "known_value": (_pass_second,)}
