"""How many iterations of loops one workgroup of a kernel makes at most, by the kind of the kernel.

A workgroup runs kernels of these kinds beside others in its loop. Some drivers end loops without a word after a number
of iterations in all (MAX_LOOP_ITERATIONS), so that they bound the turns of a dispatch.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lavax.backends.vulkan.emit.scan.lines import FOLDS
from lavax.backends.vulkan.emit.scatter.lines import SHORT_LINE
from lavax.ir.graph import Node
from lavax.ir.ops.indexing import SCATTERS
from lavax.ir.ops.lowered.scatter import share_of_rows
from lavax.passes.fuse.lane_loops import MOST_TURNS_IN_LOOP, iterations_of
from lavax.passes.fuse.register_tables import iterations_of_copies
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.scatter_lines import lines_of
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS, SELECTION

ITERATIONS_OF_MAP = 8
# Routines that declare shared memory, and functions, under names that no other routine has.
WITH_OWN_NAMES = ("select_greatest",)


def _of_contraction(kernel: Kernel) -> int:
    """A tile's sum, and its rows."""
    dots = (node for node in kernel.graph.nodes if node.op == "dot")
    return sum(64 + prod(dot.operands[0].shape[axis] for axis in dot.attrs["contract"][0]) for dot in dots)


def _of_rows(kernel: Kernel) -> int:
    """A walk for each value that is kept, at most."""
    return (kernel.domain.length + 8) * (1 + len(kernel.coordinates))


def _of_turns(kernel: Kernel) -> int:
    """All turns of a loop inside; of a loop that depends on data, as many as it takes before it is asked again."""
    loop = kernel.graph.nodes[0]
    before = iterations_of_copies(loop) if kernel.kind == "registers" else 0
    return before + iterations_of(loop, loop.attrs.get("length", MOST_TURNS_IN_LOOP))


def _of_routine(kernel: Kernel) -> int:
    """Those of its operation; others are no work beside other kernels."""
    node = kernel.graph.outputs[0]
    return _ROUTINES[node.op](node) if node.op in _ROUTINES else MAX_LOOP_ITERATIONS


def _of_factors(node: Node) -> int:
    """Small matrices have no loops, and larger ones one subgroup."""
    rows = node.operands[0].shape[-1]
    return int(rows**3 // 8 + rows)


def _of_scatter(node: Node) -> int:
    """A copy of a line, if it is short, and the updates that fall on it."""
    lines, (_, _, index, *_) = lines_of(node), node.operands
    copied = prod(node.shape[axis] for axis in lines.along)
    joined = prod(index.shape[place] for place in lines.serial)
    return joined + (copied if copied <= SHORT_LINE else 0)


def _of_search(node: Node) -> int:
    return int(node.operands[0].shape[-1].bit_length())


# Routines whose declarations are the same for all of them, or none.
_ROUTINES: dict[str, Callable[[Node], int]] = {
    **dict.fromkeys(("cholesky", "lu", "triangular_solve"), _of_factors),
    **dict.fromkeys(SCATTERS, _of_scatter),
    **dict.fromkeys(FOLDS, lambda node: node.shape[node.attrs["axis"]]),
    "join_places": lambda node: -(-node.operands[1].shape[-1] // 4),
    "join_rows": lambda node: share_of_rows(node.shape, node.operands[1].shape) // 4,
    "search_sorted": _of_search,
    # A walk for each bit of the bound, and comparisons of all that is stored.
    "select_greatest": lambda node: 40 * (node.operands[0].shape[-1] // 8 + 1) + SELECTION.room**2 // 32,
    "sort_runs": lambda node: min(node.attrs["run"], node.shape[-1]),
    "unsort": lambda node: 1,
}

# The kinds of kernels that a workgroup can run beside others: iterations of loops in one of its workgroups, at most.
ITERATIONS: dict[str, Callable[[Kernel], int]] = {
    "map": lambda kernel: ITERATIONS_OF_MAP,
    "row": _of_rows,
    "contract": _of_contraction,
    "loop": _of_turns,
    "registers": _of_turns,
    "routine": _of_routine,
}
