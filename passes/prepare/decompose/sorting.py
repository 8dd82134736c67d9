"""Sorting: short rows by counting, longer ones by merging sorted runs, long ones by radix sort."""

from __future__ import annotations

from collections.abc import Callable

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, make_node
from lavax.ir.types import uint32, uint64
from lavax.passes.build.builder import build, cast, gather, iota, splat, transpose
from lavax.passes.prepare.decompose.order_keys import float_words, floats_of, integers_of, order_keys
from lavax.passes.prepare.decompose.radix_sort import WORD, payload_of, sorted_by_bits, with_payload
from lavax.passes.target.target import ANY_DEVICE, Target


@dataclass(frozen=True)
class RowSorts:
    """Which rows are sorted by counting, merging and radix sort.

    Counting compares each element with its whole row. Chosen by `python -m benchmarks algorithms` and the table of
    docs/rejected/sorting_and_scatters.md, "Radix sort for short rows".
    """

    run: int = 32  # elements that are sorted by counting, then merged
    short_row: int = 64  # rows up to this length are always sorted by counting
    longest_counted: int = 2048  # longer rows never are
    little_work: int = 1 << 20  # comparisons in all, below which rows in between are sorted by counting
    longest_merged: int = 512  # in longer rows radix sort gains more than its tables of counts cost


_ROW_SORTS = RowSorts()


def uses_radix_sort(x: Node, target: Target) -> bool:
    """Whether the rows are sorted by radix sort."""
    return target.sorting.moves_pairs and x.shape[-1] > _ROW_SORTS.longest_merged and not _is_run(x)


def _is_run(x: Node) -> bool:
    length, limits = x.shape[-1], _ROW_SORTS
    if length <= limits.short_row:
        return True
    return length <= limits.longest_counted and x.type.size * length <= limits.little_work


def order_of_rows(x: Node, target: Target = ANY_DEVICE) -> Node:
    """The stable order along the last axis."""
    if not uses_radix_sort(x, target):
        return _by_runs(x)
    keys = order_keys(x)
    numbers = iota(keys.node.type.with_dtype(uint32), x.type.rank - 1)
    if keys.node.dtype == uint64:
        by_lower = _moved_with(cast(keys.node, uint32), numbers)
        upper = build("shift_right_logical", keys.node, splat(WORD, keys.node.type))
        return _moved_with(cast(_sorted_along(upper, by_lower), uint32), by_lower)
    return _moved_with(keys.node, numbers, keys.first)


def sharing_orders(graph: Graph) -> Graph:
    """The graph in which values whose order is computed too are not sorted again, but taken in that order.

    Gradients of sorts need that order.
    """
    both = sorted_with_order(graph)
    if not both:
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    orders: dict[tuple[Node, int], Node] = {}
    for node in graph.nodes:
        operands = [found[operand] for operand in node.operands]
        key = sorted_by(node)
        if key is None or key not in both:
            found[node] = make_node(node.op, operands, node.attrs, node.type, node.location)
            continue
        if key not in orders:
            orders[key] = make_node("sort_order", operands, node.attrs, None, node.location)
        found[node] = orders[key] if node.op == "sort_order" else _taken_along(operands[0], orders[key], key[1])
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def sorted_with_order(graph: Graph) -> set[tuple[Node, int]]:
    """The values that are sorted and whose order is needed as well, each with its axis."""
    return _sorted_in(graph, "sort") & _sorted_in(graph, "sort_order")


def _sorted_in(graph: Graph, op: str) -> set[tuple[Node, int]]:
    return {(node.operands[0], node.attrs["axis"]) for node in graph.nodes if node.op == op}


def sorted_by(node: Node) -> tuple[Node, int] | None:
    """The value that a node sorts, or whose order it gives, and the axis."""
    return (node.operands[0], node.attrs["axis"]) if node.op in ("sort", "sort_order") else None


def _by_runs(x: Node) -> Node:
    length = x.shape[-1]
    run = length if _is_run(x) else _ROW_SORTS.run
    order = build("sort_runs", x, run=run)
    while run < length:
        order = build("merge_runs", x, order, run=run)
        run *= 2
    return order


def _moved_with(keys: Node, payload: Node, first: int = 0) -> Node:
    """The payload, 32-bit integers, sorted by the keys' bits from `first` on."""
    return payload_of(sorted_by_bits(with_payload(keys, payload), WORD + first, WORD - first))


def _taken_along(x: Node, order: Node, axis: int) -> Node:
    places = [order if d == axis else iota(order.type, d) for d in range(x.type.rank)]
    return gather(x, places, range(x.type.rank))


def _sorted_along(x: Node, order: Node) -> Node:
    return _taken_along(x, order, x.type.rank - 1)


def sorted_rows(x: Node, target: Target) -> Node:
    """Sorted along the last axis. Words that stand for floats hold the sign of zero, which does not count."""
    if not uses_radix_sort(x, target) or x.dtype.bits == 64:
        return _sorted_along(x, order_of_rows(x, target))
    if x.dtype.is_float:
        words = float_words(x)
        return floats_of(sorted_by_bits(words.node, words.first, words.width, tied=True), x.dtype)
    keys = order_keys(x)
    return integers_of(sorted_by_bits(keys.node, keys.first, keys.width), x.dtype)


def along_last(rule: Callable[[Node, Target], Node]) -> Callable[[Node, Target], Node]:
    """Applies `rule`, which works on the last axis, along the axis of the node."""

    def along(node: Node, target: Target) -> Node:
        (x,) = node.operands
        axis, order = node.attrs["axis"], list(range(x.type.rank))
        if axis == order[-1]:
            return rule(x, target)
        order[axis], order[-1] = order[-1], axis
        return transpose(rule(transpose(x, order), target), order)

    return along


RULES: dict[str, Callable[[Node, Target], Node]] = {
    "sort": along_last(sorted_rows),
    "sort_order": along_last(order_of_rows),
}
