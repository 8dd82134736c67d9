"""What operations cost, in simple arithmetic operations an element. The unit of all fusion choices."""

from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.operation import OPERATIONS

_TRANSCENDENTAL = 12
_COSTS = {
    "divide": 4,
    "remainder": 6,
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
