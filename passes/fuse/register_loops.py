"""Loops over small arrays that stay in the registers of one subgroup: their kernels, and the turns of a dispatch."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node
from lavax.passes.fuse.lane_loops import iterations_of
from lavax.passes.fuse.register_tables import iterations_of_copies
from lavax.passes.kernels.kernel import Domain, Kernel
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


def register_kernel(graph: Graph) -> Kernel:
    """The kernel of a loop, which is the graph's first node."""
    return Kernel("registers", graph, Domain((), (), (), ()), {})


def most_turns_in_registers(loop: Node) -> int:
    """How many turns one dispatch takes at most."""
    return max(1, (MAX_LOOP_ITERATIONS - iterations_of_copies(loop)) // iterations_of(loop, 1))
