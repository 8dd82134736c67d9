"""Maps whose rows are parts of one length end to end, as kernels of a part each.

The gradients of a cell's gates are such a row: a sum of values that are padded to where each belongs, or those values
joined. An invocation has an element of one gate, and computes only that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node, graph_of, make_node
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import slice_along, splat
from lavax.passes.fuse.kernel_draft import variables_of
from lavax.passes.kernels.kernel import Domain, Kernel
from lavax.passes.kernels.reads import concatenate_starts
from lavax.passes.numerics.narrow_movement import is_widening

_MOST_PARTS = 8


@dataclass(frozen=True, eq=False)
class Part:
    """A kernel of the elements from `start` on of each row of another one."""

    kernel: Kernel
    start: int


def parts_of(kernel: Kernel) -> list[Part]:
    """The kernel's parts in order; the kernel itself if it is no such map."""
    outer = kernel.domain.outer
    whole, places = [Part(kernel, 0)], {(node.shape, kernel.coordinates[node]) for node in kernel.graph.outputs}
    if kernel.kind != "map" or not outer or outer[-1] != kernel.domain.rows:
        return whole
    if places != {(outer, kernel.domain.outer_variables)}:
        return whole
    starts = sorted({0, *(place for node in kernel.graph.nodes if node.shape == outer for place in _cuts(node))})
    width = outer[-1] // len(starts)
    if not 1 < len(starts) <= _MOST_PARTS or width < 2 or starts != [*range(0, outer[-1], width)]:
        return whole
    return [Part(_part(kernel, start, width), start) for start in starts]


def _cuts(node: Node) -> list[int]:
    """Where in a row something else begins."""
    if _is_padded_row(node):
        places = [node.attrs["low"][-1], node.shape[-1] - node.attrs["high"][-1]]
        return [place for place in places if 0 < place < node.shape[-1]]
    if _joins_rows(node):
        return [start for start, _ in _joined(node)]
    return []


def _is_padded_row(node: Node) -> bool:
    if node.op != "pad" or any(node.attrs["interior"]):
        return False
    *low, first = node.attrs["low"]
    *high, last = node.attrs["high"]
    return not any((*low, *high)) and first >= 0 and last >= 0


def _joins_rows(node: Node) -> bool:
    return node.op == "concatenate" and bool(node.attrs["axis"] == node.type.rank - 1)


def _joined(node: Node) -> list[tuple[int, Node]]:
    """The values that a row joins, and where each begins."""
    return [*zip(concatenate_starts(node), node.operands, strict=True)]


def _part(kernel: Kernel, start: int, width: int) -> Kernel:
    outer = *kernel.domain.outer[:-1], width
    cut: dict[Node, Node] = {}
    for node in (*kernel.graph.inputs, *kernel.graph.nodes):
        if node.shape == kernel.domain.outer:
            cut[node] = _cut(node, start, width, cut)
    variables = variables_of(outer)
    # Each has a node of its own, because each has a place of its own.
    outputs = [make_node("cast", (x,), {}, x.type, x.location) for x in (cut[node] for node in kernel.graph.outputs)]
    graph = graph_of(kernel.graph.inputs, outputs)
    domain = Domain(outer, (), variables, ())
    return replace(kernel, graph=graph, domain=domain, coordinates=dict.fromkeys(graph.outputs, variables))


def _cut(node: Node, start: int, width: int, cut: Mapping[Node, Node]) -> Node:
    """So many elements of each row of a value; `cut` has those of what it is computed from."""
    if node.op == "constant":
        return splat(node.attrs["value"], node.type.with_shape((*node.shape[:-1], width)))
    if _is_padded_row(node):
        low, (operand,) = node.attrs["low"][-1], node.operands
        if start + width <= low or start >= low + operand.shape[-1]:
            return splat(node.attrs["value"], node.type.with_shape((*node.shape[:-1], width)))
        return _within(operand, start - low, width)
    if _joins_rows(node):
        first, operand = next(each for each in reversed(_joined(node)) if each[0] <= start)
        return _within(operand, start - first, width)
    if node.op == INPUT or OPERATIONS[node.op].family != "elementwise":
        return slice_along(node, node.type.rank - 1, start, start + width)
    operands = [cut[operand] for operand in node.operands]
    if node.op == "add":
        # Beside a part are zeros: as where a row joins its parts, none is added.
        others = [each for each, whole in zip(operands, node.operands, strict=True) if not _is_beside(each, whole)]
        if len(others) < len(operands):
            return others[0] if others else operands[0]
    if node.op == "cast" and is_widening(operands[0]) and operands[0].operands[0].dtype == node.dtype:
        return operands[0].operands[0]
    return make_node(node.op, operands, node.attrs, node.type.with_shape((*node.shape[:-1], width)), node.location)


def _within(operand: Node, start: int, width: int) -> Node:
    if operand.shape[-1] == width:
        return operand
    return slice_along(operand, operand.type.rank - 1, start, start + width)


def _is_beside(part: Node, whole: Node) -> bool:
    """Whether a part is zeros, but the whole value is not."""
    while part.op == whole.op == "cast":
        (part,), (whole,) = part.operands, whole.operands
    return part.op == "constant" and part.attrs["value"] == 0 and whole.op != "constant"
