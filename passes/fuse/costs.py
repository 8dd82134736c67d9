"""The cost of operations, in simple arithmetic operations per element: the unit of all choices in fusion."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.operation import OPERATIONS


@dataclass(frozen=True)
class FunctionCosts:
    """Simple operations per element, by kind of function.

    Counted in the GLSL of each function. `python -m benchmarks comparison --only softmax --only gpt-step` shows the
    kernels that these costs lead to.
    """

    transcendental: int = 12
    narrow_exponential: int = 3  # of results that are rounded to 16 bits, as the next two
    narrow_quotient: int = 8
    narrow_polynomial: int = 14
    special: int = 40  # long polynomials in several pieces, all of which are computed
    float_pairs: int = 1000  # logarithms and exponentials in pairs of floats: never worth computing twice
    float_pair_loops: int = 4000  # loops over those


@dataclass(frozen=True)
class KernelLimits:
    """The most that one kernel holds.

    Beyond this many nodes, compile time and register use grow faster than memory traffic falls. Functions are long
    code: a CPU driver compiles the sines of four elements for some 25 ms. So a kernel has fewer nodes if they are
    functions: it is then short enough to be compiled soon, and still computes for longer than it reads and writes.
    Arrays take slots in the push constants. Chosen by `python -m benchmarks comparison --only adam-150 --only mlp-step`
    and `python -m benchmarks compile-time`.
    """

    nodes: int = 96
    cost: int = 256  # of more nodes than `few`: one node is never cut
    few: int = 16
    arrays: int = 24
    floating_arrays: int = 12  # of one floating value, so that a kernel can take in several

    values: int = 2  # of the greatest cost, or of as many nodes as one may have, in one kernel

    def are_passed(self, nodes: int, cost: int) -> bool:
        """Whether that is more than one value should take."""
        return nodes > self.nodes or (cost > self.cost and nodes > self.few)

    def are_passed_by_kernel(self, nodes: int, cost: int) -> bool:
        """Whether that is more than one kernel should compute, counting each node once."""
        return self.are_passed(nodes // self.values, cost // self.values)


_FUNCTION_COSTS = FunctionCosts()
FUNCTION_COST = _FUNCTION_COSTS.transcendental  # of a function, at least
KERNEL_LIMITS = KernelLimits()

_COSTS = {
    **dict.fromkeys(
        ("exp2", "log2", "sinh", "cosh", "asin", "acos", "atan", "cbrt"),
        _FUNCTION_COSTS.transcendental,
    ),
    **dict.fromkeys(
        ("exp", "log", "expm1", "log1p", "sin", "cos", "tanh", "logistic"),
        _FUNCTION_COSTS.transcendental,
    ),
    **dict.fromkeys(
        ("tan", "atan2", "asinh", "acosh", "atanh", "power"),
        2 * _FUNCTION_COSTS.transcendental,
    ),
    **dict.fromkeys(
        ("erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "lgamma", "digamma"),
        _FUNCTION_COSTS.special,
    ),
    **dict.fromkeys(
        ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e"),
        _FUNCTION_COSTS.special,
    ),
    **dict.fromkeys(
        ("gamma", "factorial", "beta", "poch", "boxcox", "boxcox1p", "kl_div"),
        _FUNCTION_COSTS.float_pairs,
    ),
    **dict.fromkeys(
        ("betainc", "gammainc", "gammaincc", "expn", "expi", "zeta", "polygamma"),
        _FUNCTION_COSTS.float_pair_loops,
    ),
    "divide": 4,
    "remainder": 6,
    "modulo": 8,
    "sqrt": 4,
    "rsqrt": 4,
    "barrier": 0,
    "threefry": 115,  # 20 rounds of add, rotate and xor, and 5 additions of the key
}


# Of functions marked `narrow`.
_NARROW_COSTS = {
    "exp": _FUNCTION_COSTS.narrow_exponential,
    **dict.fromkeys(("logistic", "tanh"), _FUNCTION_COSTS.narrow_quotient),
    **dict.fromkeys(("erf", "erfc"), _FUNCTION_COSTS.narrow_polynomial),
}


def code_of(node: Node) -> int:
    """The cost of a node for the limits of kernels: the rounds of a generator are long to run, but soon compiled."""
    return 0 if node.op == "threefry" else cost_of(node)


def cost_of(node: Node) -> int:
    """Simple operations per element of this node, given its operands."""
    return _NARROW_COSTS[node.op] if node.attrs.get("narrow") else COST_OF_OPERATION[node.op]


class _OfOperation(dict[str, int]):
    """Found when first asked for, because modules define operations."""

    def __missing__(self, op: str) -> int:
        cost = self[op] = _COSTS.get(op, 1) if OPERATIONS[op].family == "elementwise" else 0
        return cost


COST_OF_OPERATION = _OfOperation()
