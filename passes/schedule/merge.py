"""Merges small maps that compute the same into one dispatch, such as an optimizer's updates of a hundred parameters.

Only flat maps are merged: each element of a result comes from the same element of the arrays read, or from
arrays of one element. The merged kernel's code does not depend on the extents of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, input_node, make_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.printer import format_attribute, value_names
from lavax.ir.types import TensorType
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.index import variable
from lavax.passes.kernels.kernel import Domain, Kernel, once_a_kernel


@dataclass(frozen=True)
class MergedMaps:
    """The maps that are merged.

    Chosen by `python -m benchmarks comparison --only adam-150 --only call-150`.
    """

    # Larger maps keep a device busy alone. A power of four, because merged code is written for maps of this size.
    most_elements: int = 1 << 22


MERGED_MAPS = MergedMaps()


@once_a_kernel
def merge_key(kernel: Kernel) -> str | None:
    """Equal for kernels that can be merged; None if the kernel is no flat map."""
    size = kernel.domain.rows
    if kernel.kind != "map" or not 0 < size <= MERGED_MAPS.most_elements:
        return None
    names = value_names(kernel.graph)
    lines = []
    for node in kernel.graph.inputs:
        if node.type.size not in (1, size):
            return None
        lines.append(f"{node.dtype}{'' if node.type.size == size else '!'}")
    for node in kernel.graph.nodes:
        if not _is_flat(node, size):
            return None
        shown = [f"{key}={format_attribute(value)}" for key, value in node.attrs.items() if node.op != "broadcast"]
        operands = ",".join(names[operand] for operand in node.operands)
        lines.append(f"{node.op}({operands}){shown}{node.dtype}{'' if node.type.size == size else '!'}")
    return ";".join([*lines, *(names[output] for output in kernel.graph.outputs)])


def _is_flat(node: Node, size: int) -> bool:
    if node.type.size not in (1, size):
        return False
    if node.op == "broadcast":
        return node.operands[0].type.size == 1
    return OPERATIONS[node.op].family == "elementwise" or node.op == "constant"


def group_mergeable(pieces: Sequence[Piece], levels: dict[Piece, int]) -> list[tuple[Piece, ...]]:
    """Groups pieces of the same level that can run as one dispatch; each other piece is a group by itself."""
    groups: dict[tuple[int, str], list[Piece]] = {}
    for piece in pieces:
        key = merge_key(piece.kernel)
        groups.setdefault((levels[piece], f"alone {len(groups)}" if key is None else key), []).append(piece)
    return [tuple(group) for group in groups.values()]


def flattened_map(kernel: Kernel) -> Kernel:
    """A flat map as a map over one axis of the greatest extent: the same for all kernels with the same merge key."""
    size = kernel.domain.rows

    def flat(type: TensorType) -> TensorType:
        return type.with_shape((MERGED_MAPS.most_elements,) if type.size == size else ())

    renamed: dict[Node, Node] = {node: input_node(node.name, flat(node.type)) for node in kernel.graph.inputs}
    for node in kernel.graph.nodes:
        operands = [renamed[operand] for operand in node.operands]
        if node.op == "broadcast" and operands[0].type == flat(node.type):
            renamed[node] = operands[0]
        elif node.op == "broadcast":
            renamed[node] = make_node("broadcast", operands, {"axes": ()}, flat(node.type))
        else:
            renamed[node] = make_node(node.op, operands, node.attrs, flat(node.type))
    outputs = tuple(renamed[output] for output in kernel.graph.outputs)
    graph = Graph(
        tuple(renamed[node] for node in kernel.graph.inputs),
        tuple(dict.fromkeys(renamed[node] for node in kernel.graph.nodes if renamed[node] not in renamed)),
        outputs,
    )
    at = (variable("o0", MERGED_MAPS.most_elements),)
    return Kernel("map", graph, Domain((MERGED_MAPS.most_elements,), (), at, ()), dict.fromkeys(outputs, at))
