"""The table of gradients: one rule an operation, or a place among those that have none by intent."""
from __future__ import annotations

from lavax.passes.differentiate import contraction, elementwise, indexing, movement, reduction
from lavax.passes.differentiate.region import REGION_RULES
from lavax.passes.differentiate.rule import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **reduction.RULES,
    **movement.RULES,
    **indexing.RULES,
    **contraction.RULES,
}

# `item`, and the operations that hold graphs, have several results and rules of another form (region.REGION_RULES).
HAS_REGION_RULE = frozenset({"item", *REGION_RULES})

# No gradient passes these: their results are whole numbers or truth values, piecewise constant,
# made from no operand, or, for stop_gradient, kept from passing.
NOT_DIFFERENTIABLE = frozenset(
    {
        "and",
        "argmax",
        "argmin",
        "bitcast",
        "constant",
        "equal",
        "floor",
        "greater",
        "greater_equal",
        "iota",
        "less",
        "less_equal",
        "not",
        "not_equal",
        "or",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "stop_gradient",
        "threefry",
        "xor",
    }
)
