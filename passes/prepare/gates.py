"""Slices of a product of few rows in a loop, computed as products of slices of the matrix.

A recurrent cell multiplies its state by one matrix for all of its gates, and combines slices of the result element by
element. A kernel of the product has one gate in each invocation, so a second kernel would have to combine them. Slices
are products of one shape, which one kernel computes together with all that follows them (passes/fuse/gates.py):

    slice(x @ w + b)  =  x @ slice(w) + slice(b)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, cast, located, set_location, slice_along, splat
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.numerics.narrow_movement import is_widening
from lavax.passes.target.kernel_limits import MOST_GATES
from lavax.passes.target.target import Target

_MOST_NODES = 16  # between a product and its slices
Window = tuple[int, int]  # of the last axis


def with_gates_as_products(graph: Graph, target: Target) -> Graph:
    """The graph with such slices as products of their own, if nothing else reads the product."""
    dots = [node for node in graph.nodes if node.op == "dot" and target.products.are_gates(node)]
    cones = _joined([cone for dot in dots if (cone := cone_of_gates(dot, graph, graph.outputs))], graph)
    if not cones:
        return graph
    of_slice = {each: cone for cone in cones for each in cone if each.op == "slice"}
    left_out = {node for cone in cones for node in cone}
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    parts: dict[tuple[Node, Window], Node] = {}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            if node in of_slice:
                found[node] = _part(node.operands[0], window_of(node), of_slice[node], found, parts)
            elif node not in left_out:
                found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def cone_of_gates(dot: Node, graph: Graph, read: Collection[Node]) -> Sequence[Node]:
    """A product, what is computed from it element by element, and slices of that, in the graph's order; nothing if they
    are not slices of its columns in a few equal windows, or something else reads what lies between, such as whoever
    reads the values `read`."""
    if len(sizes_of(dot).columns) != 1:
        return ()
    outputs = frozenset(read)
    cone, slices, ahead = {dot: None}, dict[Node, None](), [dot]
    while ahead:
        node = ahead.pop()
        if node in outputs or len(cone) > _MOST_NODES:
            return ()
        for user in graph.users.get(node, ()):
            if _is_slice_of_columns(user):
                slices[user] = None
            elif OPERATIONS[user.op].family != "elementwise":
                return ()
            elif user not in cone:
                cone[user] = None
                ahead.append(user)
    return sorted((*cone, *slices), key=graph.position.__getitem__) if _are_alike(slices) else ()


def _are_alike(slices: Iterable[Node]) -> bool:
    """Whether slices are of a few windows of one width."""
    windows = {window_of(each) for each in slices}
    return len({end - start for start, end in windows}) == 1 and 1 < len(windows) <= MOST_GATES


def _joined(cones: Iterable[Sequence[Node]], graph: Graph) -> list[Sequence[Node]]:
    """The cones, with those that meet as one: the slices of a sum of products are of all of them."""
    apart: list[set[Node]] = []
    for cone in map(set, cones):
        for other in [other for other in apart if not other.isdisjoint(cone)]:
            apart.remove(other)
            cone |= other
        apart.append(cone)
    alike = [cone for cone in apart if _are_alike(node for node in cone if node.op == "slice")]
    return [sorted(cone, key=graph.position.__getitem__) for cone in alike]


def window_of(columns: Node) -> Window:
    """The columns that a slice takes."""
    return columns.attrs["start"][-1], columns.attrs["limit"][-1]


def _is_slice_of_columns(node: Node) -> bool:
    if node.op != "slice" or any(stride != 1 for stride in node.attrs["stride"]):
        return False
    *start, _ = node.attrs["start"]
    *limit, _ = node.attrs["limit"]
    return not any(start) and tuple(limit) == node.operands[0].shape[:-1]


def _part(
    node: Node,
    window: Window,
    cone: Sequence[Node],
    found: Mapping[Node, Node],
    parts: dict[tuple[Node, Window], Node],
) -> Node:
    """The window of a value of the cone."""
    inside, needed = frozenset(cone), {node}
    for value in reversed(cone):  # what only later slices need may be computed from this one
        if value in needed:
            needed.update(inside.intersection(value.operands))
    for value in cone:  # in order, so that operands are there
        if value not in needed or (value, window) in parts:
            continue
        if value.op == "dot":
            parts[value, window] = _product(value, window, found)
            continue
        operands = [
            parts[operand, window] if operand in inside else _slice(found[operand], -1, window)
            for operand in value.operands
        ]
        parts[value, window] = build(value.op, *operands, type=operands[0].type.with_dtype(value.dtype), **value.attrs)
    return parts[node, window]


def _product(dot: Node, window: Window, found: Mapping[Node, Node]) -> Node:
    left, right = (found[operand] for operand in dot.operands)
    (axis,) = free_axes(right.type, dot.attrs["batch"][1], dot.attrs["contract"][1])
    narrow = _slice(right.operands[0], axis, window) if is_widening(right) else None
    operands = left, _slice(right, axis, window) if narrow is None else cast(narrow, right.dtype)
    return build("dot", *operands, **dot.attrs)


def _slice(x: Node, axis: int, window: Window) -> Node:
    if x.op == "constant":
        first, end = window
        axis %= len(x.shape)
        return splat(x.attrs["value"], x.type.with_shape((*x.shape[:axis], end - first, *x.shape[axis + 1 :])))
    return slice_along(x, axis % len(x.shape), *window)
