"""Cuts a graph into kernels, in one walk from the inputs to the outputs.

A node either *floats*, so that each of its readers computes it again (movement, and elementwise chains over arrays in
memory), or belongs to one kernel, which is a *kernel draft* until the walk ends. Reductions, contractions and routines
open kernels. Nodes computed from a kernel's values join it if the legality rules of `coordinates` allow; otherwise the
values they read become results of their kernel, and the nodes float over those. At the end, floating outputs get map
kernels, shared by outputs that have the same shape and read the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS, Family
from lavax.passes.fuse.contraction import visit_contraction
from lavax.passes.fuse.control_flow import visit_control_flow, visit_item
from lavax.passes.fuse.elementwise import visit_cast, visit_elementwise
from lavax.passes.fuse.fusion import Fusion
from lavax.passes.fuse.movement import visit_movement
from lavax.passes.fuse.order import walk
from lavax.passes.fuse.reduction import visit_reduction
from lavax.passes.fuse.routine import visit_routine
from lavax.passes.target.target import ANY_DEVICE, Target

Visit = Callable[[Fusion, Node], None]

_OF_FAMILY: Mapping[Family, Visit] = {
    "source": visit_movement,
    "movement": visit_movement,
    "elementwise": visit_elementwise,
    "reduction": visit_reduction,
    "contraction": visit_contraction,
    "region": visit_control_flow,
    "indexing": visit_routine,
    "routine": visit_routine,
    "lowered": visit_routine,
    "axis": visit_routine,
}
# Operations that are fused otherwise than their family.
_OF_OPERATION: Mapping[str, Visit] = {
    "cast": visit_cast,
    "gather": visit_movement,
    "item": visit_item,
    "wavefront": visit_control_flow,
}

_NONE_CARRIED: Mapping[Node, Node] = {}


def fuse(graph: Graph, target: Target = ANY_DEVICE, carried: Mapping[Node, Node] = _NONE_CARRIED) -> Fusion:
    """Fuses the graph for a device. The result's `all_drafts` holds the kernels; all outputs are stored.

    `carried` has the outputs that a loop writes over inputs, if it can.
    """
    fusion = Fusion(graph, target, carried)
    for node in walk(graph.nodes):
        visit = _OF_OPERATION.get(node.op) or _OF_FAMILY[OPERATIONS[node.op].family]
        visit(fusion, node)
    for output in dict.fromkeys(graph.outputs):
        fusion.store(output)
    return fusion
