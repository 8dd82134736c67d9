"""The table of gradients: one rule per operation, or membership in the set of operations that have none."""
from __future__ import annotations

from lavax.ir.operation import names_of_family
from lavax.passes.differentiate import (
    attention,
    complex_numbers,
    contraction,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    named_axes,
    reduction,
    routine,
    special,
    trigonometric,
    window,
)
from lavax.passes.differentiate.gradient_rule import GradientRule
from lavax.passes.differentiate.reverse_control_flow import CONTROL_FLOW_RULES

RULES: dict[str, GradientRule] = {
    **elementwise.RULES,
    **complex_numbers.RULES,
    **trigonometric.RULES,
    **special.RULES,
    **reduction.RULES,
    **movement.RULES,
    **indexing.RULES,
    **contraction.RULES,
    **window.RULES,
    **routine.RULES,
    **attention.RULES,
    **linear_algebra.RULES,
    **named_axes.RULES,
}

# Operations that hold graphs have several results, which `item` takes apart, and rules of another form
# (reverse_control_flow.CONTROL_FLOW_RULES).
HAS_CONTROL_FLOW_RULE = frozenset({"item", *CONTROL_FLOW_RULES})

# No gradient passes these: their results are whole numbers or truth values, piecewise constant, or made from no
# operand; stop_gradient stops it. Gradients of functions that are computed in pairs of floats (gammainc, expn, zeta,
# beta, boxcox, …) are defined around them, in lavax.scipy. Operations of lowering are made after differentiation.
NOT_DIFFERENTIABLE = names_of_family("lowered") | frozenset(
    {
        "and",
        "argmax",
        "argmin",
        "axis_index",
        "beta",
        "betainc",
        "bitcast",
        "boxcox",
        "boxcox1p",
        "ceil",
        "constant",
        "equal",
        "expi",
        "expn",
        "factorial",
        "floor",
        "gamma",
        "gammainc",
        "gammaincc",
        "greater",
        "greater_equal",
        "iota",
        "kl_div",
        "less",
        "less_equal",
        "not",
        "not_equal",
        "or",
        "poch",
        "polygamma",
        "population_count",
        "round",
        "search_sorted",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "sort_order",
        "stop_gradient",
        "threefry",
        "top_order",
        "truncate",
        "unit_root",
        "xor",
        "zeta",
    }
)
