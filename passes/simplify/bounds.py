"""Known bounds of integer values."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.matching import splat_value

_SAME_ELEMENTS = frozenset({"reshape", "transpose", "broadcast", "slice", "flip", "gather", "stop_gradient"})
_DEPTH = 4  # of the search, in nodes: the bounds of an index come from near it


def bounds(node: Node, depth: int = _DEPTH) -> tuple[int, int] | None:
    """The least and the greatest possible element of an integer `node`; None for other dtypes."""
    whole = (node.dtype.lowest, node.dtype.highest) if node.dtype.is_integer else None
    if whole is None or depth == 0:
        return whole
    if node.op == "constant":
        return splat_value(node), splat_value(node)
    if node.op == "iota":
        counted = (0, node.shape[node.attrs["axis"]] - 1)
        return counted if counted[1] <= whole[1] else whole
    if node.op in ("argmax", "argmin"):
        return 0, node.operands[0].shape[node.attrs["axis"]] - 1
    if node.op == "cast":
        return _bounds_of_cast(node.operands[0], whole, depth)
    if node.op in _SAME_ELEMENTS:
        return bounds(node.operands[0], depth - 1)
    if node.op == "where":
        x, y = (bounds(operand, depth - 1) or whole for operand in node.operands[1:])
        return min(x[0], y[0]), max(x[1], y[1])
    if node.op in ("maximum", "minimum"):
        x, y = (bounds(operand, depth - 1) or whole for operand in node.operands)
        choose = max if node.op == "maximum" else min
        return choose(x[0], y[0]), choose(x[1], y[1])
    return whole


def _bounds_of_cast(source: Node, whole: tuple[int, int], depth: int) -> tuple[int, int]:
    """Those of a conversion to integers of the bounds `whole`: the source's own, if none of its numbers wraps."""
    if source.dtype.kind == "bool":
        return 0, 1
    of_source = bounds(source, depth - 1)
    if of_source is None or of_source[0] < whole[0] or of_source[1] > whole[1]:
        return whole
    return of_source
