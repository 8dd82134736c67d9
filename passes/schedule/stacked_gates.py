"""Scans that stack the gates of a cell each for itself, because one kernel writes values of one shape.

The gradient of a cell joins the gradients of its gates, multiplies them by one matrix, and stacks them for the products
that follow the loop. A product of joined values is a sum of products of each. And where a cell's gradient needs what a
product was before its gates were cut from it, the gates are stacked. What is stacked is joined after the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.ir.graph import Graph, Node, graph_of, make_node, with_operands
from lavax.ir.types import float32, tuple_of
from lavax.passes.build.builder import add, build, cast, concatenate, slice_along
from lavax.passes.build.control_flow import item, parts_of
from lavax.passes.prepare.gates import Window, cone_of_gates, window_of
from lavax.passes.schedule.factors_in_order import with_factors_along_sums
from lavax.passes.schedule.rotated_turns import halves_of
from lavax.passes.schedule.unrolled_scan import may_be_recorded
from lavax.passes.target.kernel_limits import MOST_GATES
from lavax.passes.target.target import Loops

_Places = list[tuple[int, ...]]  # per result of a scan: where it, or its parts, are among those of another


def with_gates_stacked(graph: Graph, loops: Loops) -> Graph:
    """The graph with such scans; those that workgroups run slice by slice stay as they are."""
    if not any(node.op == "scan" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    places: dict[Node, _Places] = {}
    for node in graph.nodes:
        if node.op == "item" and node.operands[0] in places:
            loop = found[node.operands[0]]
            parts = [item(loop, place) for place in places[node.operands[0]][node.attrs["index"]]]
            found[node] = parts[0] if len(parts) == 1 else concatenate(parts, node.type.rank - 1)
            continue
        built = with_operands(node, tuple(found[operand] for operand in node.operands))
        if node.op == "scan" and not loops.slices(built):
            built, of_results = _in_turns(built, loops)
            places |= {node: of_results} if of_results else {}
        found[node] = built
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _in_turns(scan: Node, loops: Loops) -> tuple[Node, _Places]:
    """The scan as one whose gates are stacked, and where its results are, if that changed.

    Parts may be small enough for workgroups to run it slice by slice, which read a matrix in its own order.
    """
    apart = _stacked(scan, loops)
    return apart if loops.slices(apart[0]) else _stacked(with_factors_along_sums(scan, loops), loops)


def _stacked(scan: Node, loops: Loops) -> tuple[Node, _Places]:
    found = _with_factors_apart(scan, loops) or _with_products_apart(scan, loops)
    return found or (scan, [])


def _with_factors_apart(scan: Node, loops: Loops) -> tuple[Node, _Places] | None:
    """The scan of a gradient with products of parts."""
    if halves_of(scan, loops) is None:
        return None
    body = scan.attrs["body"]
    joined = {dot: parts for dot in body.nodes if dot.op == "dot" and (parts := _parts_of_factor(dot))}
    if not joined:
        return None
    found: dict[Node, Node] = {node: node for node in body.inputs}
    for node in body.nodes:
        if node in joined:
            found[node] = _in_parts(node, [found[part] for part in joined[node]], found[node.operands[1]])
        else:
            found[node] = with_operands(node, tuple(found[operand] for operand in node.operands))
    stacked = body.outputs[scan.attrs["carries"] :]
    apart = {output: [found[part] for part in parts] for output in stacked if (parts := _parts(output))}
    made, places = _stacking(scan, found, apart)
    return (made, places) if halves_of(made, loops) is not None else None


def _with_products_apart(scan: Node, loops: Loops) -> tuple[Node, _Places] | None:
    """The scan with slices of what it stacks in place of a whole product, if it reads slices itself."""
    if not may_be_recorded(scan, loops):
        return None
    body, carries = scan.attrs["body"], scan.attrs["carries"]
    stacked, parts = body.outputs[carries:], dict[Node, list[Node]]()
    for dot in body.nodes:
        if dot.op == "dot" and loops.are_gates(dot):
            cone = cone_of_gates(dot, body, body.outputs[:carries])
            windows = sorted({window_of(node) for node in cone if node.op == "slice"})
            for value in cone if _are_whole(windows, dot) else ():
                if value.op != "slice" and value in stacked:
                    parts[value] = [slice_along(value, value.type.rank - 1, *window) for window in windows]
    return _stacking(scan, {node: node for node in (*body.inputs, *body.nodes)}, parts) if parts else None


def _are_whole(windows: Sequence[Window], dot: Node) -> bool:
    """Whether windows lie end to end."""
    starts = [0, *(end for _, end in windows)]
    return starts == [*(start for start, _ in windows), dot.shape[-1]]


def _stacking(scan: Node, found: Mapping[Node, Node], parts: Mapping[Node, Sequence[Node]]) -> tuple[Node, _Places]:
    """The scan with new values for those of its body, and with parts of what it stacks in place of some."""
    body, carries = scan.attrs["body"], scan.attrs["carries"]
    outputs = [found[output] for output in body.outputs[:carries]]
    types, places = [*parts_of(scan)[:carries]], _Places((place,) for place in range(carries))
    for output, type in zip(body.outputs[carries:], parts_of(scan)[carries:], strict=True):
        own = parts.get(output, (found[output],))
        places.append(tuple(range(len(outputs), len(outputs) + len(own))))
        outputs += own
        types += [type.with_shape((type.shape[0], *part.shape)) for part in own]
    attrs = {**scan.attrs, "body": graph_of(body.inputs, outputs)}
    return make_node("scan", scan.operands, attrs, tuple_of(types), scan.location), places


def _parts_of_factor(dot: Node) -> list[Node]:
    (left, _), rank = dot.operands, dot.operands[0].type.rank
    return _parts(left) if dot.attrs["contract"][0] == (rank - 1,) and dot.attrs["batch"] == ((), ()) else []


def _parts(node: Node) -> list[Node]:
    """The few values of one shape that a value joins along its last axis; none if it is no such value."""
    if node.op == "concatenate" and node.attrs["axis"] == node.type.rank - 1:
        parts = list(node.operands)
    else:
        parts = _padded_parts(node)
    alike = len({part.shape for part in parts}) == 1 and 1 < len(parts) <= MOST_GATES
    return parts if alike else []


def _padded_parts(node: Node) -> list[Node]:
    """The parts of a sum of values that are padded with zeros to where they do not meet."""
    found: dict[int, Node] = {}
    ahead = [node]
    while ahead:
        each = ahead.pop()
        if each.op == "add" and len(found) + len(ahead) < MOST_GATES:
            ahead += each.operands
            continue
        if each.op != "pad" or each.attrs["value"] != 0 or any(each.attrs["interior"]) or min(each.attrs["low"]) < 0:
            return []
        *ahead_of, low = each.attrs["low"]
        *behind, _ = each.attrs["high"]
        if any(ahead_of) or any(behind) or low in found:
            return []
        found[low] = each.operands[0]
    parts = [found[low] for low in sorted(found)]
    starts = [sum(part.shape[-1] for part in parts[:number]) for number in range(len(parts))]
    whole = sum(part.shape[-1] for part in parts) == node.shape[-1]
    return parts if whole and starts == sorted(found) else []


def _in_parts(dot: Node, parts: Sequence[Node], right: Node) -> Node:
    """A product of joined values as a sum of products, in 32 bits at least."""
    (axis,), total, start = dot.attrs["contract"][1], None, 0
    attrs = dict(dot.attrs)
    wide = parts[0].dtype.bits < 32
    if wide:
        attrs["precision"] = parts[0].dtype.name
    for part in parts:
        end = start + part.shape[-1]
        factors = part, slice_along(right, axis, start, end)
        product = build("dot", *((cast(factor, float32) for factor in factors) if wide else factors), **attrs)
        total, start = product if total is None else add(total, product), end
    assert total is not None
    return cast(total, dot.dtype) if wide else total
