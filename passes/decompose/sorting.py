"""Sorting by merging: short runs are sorted by counting, then neighbouring runs are merged until one is left."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.passes.builder import build, gather, iota, transpose

# Counting takes time in proportion to the run. A row is one run where that is little work in all.
_RUN, _SHORT_ROW, _LONGEST_RUN, _LITTLE_WORK = 32, 64, 2048, 1 << 20


def order_of_rows(keys: Node) -> Node:
    """The stable order along the last axis."""
    length = keys.shape[-1]
    short = length <= _SHORT_ROW or (length <= _LONGEST_RUN and keys.type.size * length <= _LITTLE_WORK)
    run = length if short else _RUN
    order = build("sort_runs", keys, run=run)
    while run < length:
        order = build("merge_runs", keys, order, run=run)
        run *= 2
    return order


def _exchanged(x: Node, axis: int) -> Node:
    """`x` with `axis` and the last axis in each other's place."""
    order = list(range(x.type.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return x if axis == len(order) - 1 else transpose(x, order)


def _sort_order(node: Node) -> Node:
    (x,) = node.operands
    axis = node.attrs["axis"]
    return _exchanged(order_of_rows(_exchanged(x, axis)), axis)


def _sort(node: Node) -> Node:
    (x,) = node.operands
    axis = node.attrs["axis"]
    keys = _exchanged(x, axis)
    order = order_of_rows(keys)
    last = order.type.rank - 1
    places = [order if d == last else iota(order.type, d) for d in range(order.type.rank)]
    return _exchanged(gather(keys, places, range(last + 1)), axis)


RULES: dict[str, Callable[[Node], Node]] = {"sort": _sort, "sort_order": _sort_order}
