"""Updates of a single place, whose result is read element by element, as choices.

A scatter copies the whole array and is a kernel of its own. If what reads the result goes through all elements anyway,
it chooses between the update and the array itself, by each element's place. Results that are returned or carried stay
scatters, which change arrays in place.
"""

from __future__ import annotations

from lavax.ir.graph import Graph, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.indexing import SCATTERS
from lavax.ir.types import TensorType
from lavax.passes.build.builder import broadcast, build, equal, iota, reshaped, where
from lavax.passes.build.rebuild import rebuilt

_PREFIX, _SET = "scatter_", "scatter_set"


def with_single_places_chosen(graph: Graph) -> Graph:
    """The graph with such updates; the same object if there are none."""
    chosen = {node for node in graph.nodes if _is_single(node) and _is_read_by_element(node, graph)}
    if not chosen:
        return graph
    return rebuilt(graph, lambda node, built: _chosen(built) if node in chosen else built)


def _is_single(node: Node) -> bool:
    return node.op in SCATTERS and all(index.type.size == 1 for index in node.operands[2:])


def _is_read_by_element(node: Node, graph: Graph) -> bool:
    readers = graph.users.get(node, ())
    return node not in graph.outputs and all(OPERATIONS[reader.op].family == "elementwise" for reader in readers)


def _chosen(scatter: Node) -> Node:
    """An update outside of the array changes nothing, as no element has that place."""
    array, updates, *indices = scatter.operands
    axes = scatter.attrs["axes"]
    others = [axis for axis in range(array.type.rank) if axis not in axes]
    update = broadcast(reshaped(updates, [array.shape[axis] for axis in others]), array.shape, others)
    if scatter.op != _SET:
        update = build(scatter.op.removeprefix(_PREFIX), array, update)
    here = [_is_at(index, axis, array) for index, axis in zip(indices, axes, strict=True)]
    condition = here[0]
    for other in here[1:]:
        condition = build("and", condition, other)
    return where(condition, update, array)


def _is_at(index: Node, axis: int, array: Node) -> Node:
    """Whether elements of the array have that place along an axis."""
    places = iota(TensorType((array.shape[axis],), index.dtype), 0)
    is_at = equal(places, broadcast(reshaped(index, ()), places.shape, ()))
    return broadcast(is_at, array.shape, (axis,))
