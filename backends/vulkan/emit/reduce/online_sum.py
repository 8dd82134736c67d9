"""The maximum of a row and its sum of exponentials, exp(x - maximum), in one walk over the row.

Terms are added up relative to a shift, which follows the largest element so far: if an element is far above the shift,
the sum is scaled, and the shift becomes that element (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018). The shift stays while no element is far above it, so scaling is rare and its rounding errors do not
grow with the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.backends.vulkan.glsl.expressions import COMPONENTS, MINUS_INFINITY, VECTOR
from lavax.backends.vulkan.glsl.uses import Uses
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.types import float32
from lavax.passes.kernels.accesses import operand_coordinates
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import READS, Coordinates

# How far above the shift elements may lie: e^16 is far from overflow, and scaling by e^-16 scales errors too.
_FAR = "16.0"
_LOWEST = "uintBitsToFloat(0xff7fffffu)"
_MOVEMENT = ("broadcast", "reshape", "transpose")


def phases_of(kernel: Kernel) -> dict[Node, int]:
    """For each reduction the number of its walk, from 1: after all reductions it depends on."""
    depth: dict[Node, int] = {}
    phases: dict[Node, int] = {}
    for node in kernel.graph.nodes:
        depth[node] = max((depth.get(operand, 0) for operand in node.operands if operand.op != INPUT), default=0)
        if node.op not in READS:
            depth[node] += 1
            phases[node] = depth[node]
    return phases


@dataclass(frozen=True)
class OnlineSum:
    """`total` is the sum of exp(x - subtrahend), `greatest` the maximum of the same x.

    The subtrahend, a node and its coordinates, has one value per row, mostly that maximum.
    """

    greatest: Node
    total: Node
    subtrahend: tuple[Node, Coordinates]

    @property
    def x(self) -> Node:
        return self.greatest.operands[0]


def online_sum_of(kernel: Kernel) -> OnlineSum | None:
    """The first two walks of a kernel, if the first one is of a maximum and the second of such a sum alone."""
    phases = phases_of(kernel)
    early = sorted((phase, node.op) for node, phase in phases.items() if phase <= 2)
    if early != [(1, "max"), (2, "sum")]:
        return None
    greatest, total = sorted((node for node in phases if phases[node] <= 2), key=phases.__getitem__)
    if total.dtype != float32:
        return None
    at = operand_coordinates(total, kernel.coordinates[total], kernel)
    grown = total.operands[0]
    if grown.op != "exp" or grown.operands[0].op != "subtract":
        return None
    x, subtrahend = grown.operands[0].operands
    if x is not greatest.operands[0] or at != operand_coordinates(greatest, kernel.coordinates[greatest], kernel):
        return None
    found = _of_a_row(subtrahend, at, kernel)
    return OnlineSum(greatest, total, found) if found is not None else None


def _of_a_row(node: Node, at: Coordinates, kernel: Kernel) -> tuple[Node, Coordinates] | None:
    """The node, and its coordinates, that a node repeats along a row; None if it has a value per element."""
    names = {name for index in kernel.domain.reduced_variables for name in index.variables}
    while any(not index.variables.isdisjoint(names) for index in at):
        if node.op not in _MOVEMENT:
            return None
        ((node, at),) = READS[node.op](node, at)
    return node, at


@dataclass(frozen=True)
class OnlineRegisters:
    """The variables of an invocation: the largest element so far, the shift, and the sum relative to it."""

    peak: str
    shift: str
    total: str
    uses: Uses

    def opened(self) -> list[str]:
        """Statements that come first. The shift is a number from the start, so that -inf lies below it."""
        return [f"float {self.peak} = {MINUS_INFINITY};", f"float {self.shift} = {_LOWEST};"]

    def masked(self, name: str, value: str, condition: str, kind: str) -> list[str]:
        """Statements for an element, or a vector of them, that counts if the condition holds."""
        return [f"{kind} {name} = {value};", f"if (!({condition})) {name} = {kind}({MINUS_INFINITY});"]

    def shifted(self, values: Sequence[str], width: int, top: str, lost: bool) -> list[str]:
        """Statements that bring the shift near the largest of some elements, or vectors of them."""
        factor = f"{top}_factor"
        scaled = [self.total, *([f"{self.total}_lost"] if lost else [])]
        return [
            f"float {top} = {_largest(values, width, 'max')};",  # of a NaN and a number either
            f"if ({top} > {self.shift} + {_FAR}) {{",
            f"    float {factor} = {self.uses.function('lx_exp_nonpositive')}({self.shift} - {top});",
            *(f"    {name} *= {factor};" for name in scaled),
            f"    {self.shift} = {top};",
            "}",
        ]

    def part(self, values: Sequence[str]) -> str:
        """The sum of the terms of some elements."""
        term = self.uses.function("lx_exp_term")
        return " + ".join(f"{term}({value} - {self.shift})" for value in values)

    def peaked(self, values: Sequence[str], width: int, top: str, part: str) -> list[str]:
        """Statements that join the elements to the maximum, which is NaN if one of them is: then so is a term."""
        total = " + ".join(f"{part}.{c}" for c in COMPONENTS) if width == VECTOR else part
        maximum, isnan = map(self.uses.function, ("lx_maximum", "lx_isnan"))
        exact = _largest(values, width, maximum)
        return [f"if ({isnan}({total})) {top} = {exact};", f"{self.peak} = {maximum}({self.peak}, {top});"]

    def closed(self, subtrahend: str, total: str) -> str:
        """The statement after the walk, by which `total` becomes relative to the subtrahend."""
        return f"{total} *= {self.uses.function('lx_exp')}({self.shift} - {subtrahend});"

    def ended(self, subtrahend: str, total: str) -> list[str]:
        """Statements that set the row group's sum to the term of an infinite maximum, mostly NaN, if it is one."""
        exp, isinf = map(self.uses.function, ("lx_exp", "lx_isinf"))
        return [
            f"precise float {total}_above = {self.peak} - {subtrahend};",
            f"{total} = mix({total}, {exp}({total}_above), {isinf}({self.peak}));",
        ]


def _largest(values: Sequence[str], width: int, function: str) -> str:
    """An expression for the largest of some numbers, or of all components of vectors, by halves to shorten chains."""
    if width == VECTOR:
        values = [f"{value}.{component}" for value in values for component in COMPONENTS]
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return f"{function}({_largest(values[:middle], 1, function)}, {_largest(values[middle:], 1, function)})"
