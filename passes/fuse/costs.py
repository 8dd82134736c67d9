"""What operations cost, in simple arithmetic operations an element. The unit of all fusion choices."""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.operation import OPERATIONS

_TRANSCENDENTAL = 12
# Long polynomials, in several pieces of which all are computed.
_SPECIAL = 40
# Logarithms and exponentials in pairs of floats, and loops over them: never worth doing twice.
_PAIRS, _LOOP = 1000, 4000
_COSTS = {
    **dict.fromkeys(("exp2", "log2", "sinh", "cosh", "asin", "acos", "atan", "cbrt"), _TRANSCENDENTAL),
    **dict.fromkeys(("tan", "atan2", "asinh", "acosh", "atanh"), 2 * _TRANSCENDENTAL),
    **dict.fromkeys(("erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "lgamma", "digamma"), _SPECIAL),
    **dict.fromkeys(("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"), _SPECIAL),
    **dict.fromkeys(("gamma", "factorial", "beta", "poch", "boxcox", "boxcox1p", "kl_div"), _PAIRS),
    **dict.fromkeys(("betainc", "gammainc", "gammaincc", "expn", "expi", "zeta", "polygamma"), _LOOP),
    "divide": 4,
    "remainder": 6,
    "modulo": 8,
    "sqrt": 4,
    "rsqrt": 4,
    "exp": _TRANSCENDENTAL,
    "log": _TRANSCENDENTAL,
    "expm1": _TRANSCENDENTAL,
    "log1p": _TRANSCENDENTAL,
    "sin": _TRANSCENDENTAL,
    "cos": _TRANSCENDENTAL,
    "tanh": _TRANSCENDENTAL,
    "logistic": _TRANSCENDENTAL,
    "power": 2 * _TRANSCENDENTAL,
    "barrier": 0,
    "threefry": 115,  # 20 rounds of add, rotate and xor, 5 additions of the key
}

# Nodes of one kernel: beyond this, compile time and registers grow faster than memory traffic falls.
MOST_NODES = 96
# Arrays of one kernel: slots in the push constants.
MOST_ARRAYS = 24
# Arrays of one floating value, so that a kernel can take in several.
MOST_FLOATING_ARRAYS = 12


def cost_of(node: Node) -> int:
    """Simple operations an element of this node takes, its operands given."""
    if OPERATIONS[node.op].family == "elementwise":
        return _COSTS.get(node.op, 1)
    return 0
