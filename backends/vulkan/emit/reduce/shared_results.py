"""Reductions that have one result for all rows of a vector, such as the greatest score beside elements of a value.

An invocation with four neighbouring rows computes them once, not in four equal components.
"""

from __future__ import annotations

from collections.abc import Collection

from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.reductions import POSITIONS
from lavax.ir.graph import Node
from lavax.ir.operation import names_of_family
from lavax.passes.kernels.accesses import operand_coordinates
from lavax.passes.kernels.kernel import Kernel, once_a_kernel
from lavax.passes.kernels.reads import READS, Coordinates

# Operations whose elements depend on their coordinates only through what they read.
TRANSPARENT = frozenset((*names_of_family("elementwise"), "reshape", "transpose", "broadcast", "slice", "flip"))


def shared_results(kernel: Kernel, rows: int = VECTOR) -> frozenset[Node]:
    """The reductions whose elements are the same for so many neighbouring rows."""
    if not kernel.domain.outer or kernel.domain.outer[-1] % rows:
        return frozenset()
    return _results_along(kernel, frozenset(kernel.domain.outer_variables[-1].variables))


@once_a_kernel
def results_of_all_rows(kernel: Kernel) -> frozenset[Node]:
    """The reductions whose elements are the same for every row."""
    return _results_along(kernel, _rows(kernel))


def same_for_all_rows(kernel: Kernel, instance: tuple[Node, Coordinates]) -> bool:
    """Whether nothing that an element is computed from changes from row to row."""
    return _is_shared(instance, _rows(kernel), results_of_all_rows(kernel))


def _rows(kernel: Kernel) -> frozenset[str]:
    """The variables that number rows."""
    return frozenset[str]().union(*(index.variables for index in kernel.domain.outer_variables))


def _results_along(kernel: Kernel, along: frozenset[str]) -> frozenset[Node]:
    found: set[Node] = set()
    for node, at in kernel.coordinates.items():
        is_plain = node.op not in READS and node.op not in POSITIONS
        if is_plain and _is_shared((node.operands[0], operand_coordinates(node, at, kernel)), along, found):
            found.add(node)
    return frozenset(found)


def _is_shared(root: tuple[Node, Coordinates], along: frozenset[str], found: Collection[Node]) -> bool:
    """Whether nothing that the element is computed from changes along these variables."""
    stack, seen = [root], {root}
    while stack:
        node, at = stack.pop()
        if node in found or node.op == "constant" or all(index.variables.isdisjoint(along) for index in at):
            continue
        if node.op not in TRANSPARENT:
            return False
        ahead = [read for read in READS[node.op](node, at) if read not in seen]
        seen.update(ahead)
        stack += ahead
    return True
