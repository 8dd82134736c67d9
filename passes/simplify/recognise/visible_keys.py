"""The keys that a mask makes visible by their distance from the query: causal masks and sliding windows."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node, make_node
from lavax.passes.build.builder import logical_and
from lavax.passes.kernels.index import Index, constant, linear, variable
from lavax.passes.kernels.reads import READS, Coordinates

# The most nodes of a mask to look at.
_MOST_NODES = 64
_MOVED = frozenset(("reshape", "transpose", "broadcast", "slice", "flip"))


@dataclass(frozen=True)
class Visible:
    """Keys with lowest <= key - query <= highest for which `mask` holds; it holds for all if it is None."""

    lowest: int
    highest: int
    mask: Node | None


def visible_keys(mask: Node | None) -> Visible:
    """The mask [..., queries, keys] as bounds of the distance, and the rest of it. None: all keys are visible."""
    if mask is None:
        return Visible(-(1 << 30), 1 << 30, None)
    names = tuple(variable(f"i{axis}", extent) for axis, extent in enumerate(mask.shape))
    query, key = names[-2:]
    lowest, highest, rest = 1 - mask.shape[-2], mask.shape[-1] - 1, []
    for part in _conjuncts(mask):
        bounds = None if query.is_constant or key.is_constant else _bounds(part, names, query, key)
        if bounds is None:
            rest.append(part)
        else:
            lowest, highest = max(lowest, bounds[0]), min(highest, bounds[1])
    left = None
    for part in rest:
        left = part if left is None else logical_and(left, part)
    return Visible(lowest, highest, left)


def _conjuncts(mask: Node) -> list[Node]:
    """The masks whose conjunction is the mask, each in its shape."""
    found: list[Node] = []
    waiting: list[tuple[Node, tuple[Node, ...]]] = [(mask, ())]  # a node, and the movement from it to the mask
    while waiting:
        node, moves = waiting.pop()
        if node.op == "and" and len(waiting) + len(found) < _MOST_NODES:
            waiting += [(operand, moves) for operand in reversed(node.operands)]
        elif node.op in _MOVED and _holds_and(node):
            waiting.append((node.operands[0], (*moves, node)))
        else:
            for move in reversed(moves):
                node = make_node(move.op, (node,), move.attrs, move.type, move.location)
            found.append(node)
    return found


def _holds_and(node: Node) -> bool:
    while node.op in _MOVED:
        (node,) = node.operands
    return node.op == "and"


def _bounds(part: Node, at: Coordinates, query: Index, key: Index) -> tuple[int, int] | None:
    """The bounds of the distance that a comparison of positions of queries and keys sets."""
    sign = 1
    while part.op in _MOVED or part.op == "not":
        sign = -sign if part.op == "not" else sign
        ((part, at),) = READS[part.op](part, at)
    if part.op not in _AT_LEAST:
        return None
    left, right = (_position(operand, at) for operand in part.operands)
    if left is None or right is None:
        return None
    # The comparison is difference >= least.
    difference, least = _AT_LEAST[part.op](left, right)
    if sign < 0:  # difference <= least - 1, that is -difference >= 1 - least
        difference, least = linear([(difference, -1)]), 1 - least
    for direction in (1, -1):
        gone = linear([(difference, 1), (key, -direction), (query, direction)])
        if gone.is_constant:
            bound = least - gone.constant
            return (bound, 1 << 30) if direction == 1 else (-(1 << 30), -bound)
    return None


# comparison -> (difference, least): it holds if difference >= least
_AT_LEAST: Mapping[str, Callable[[Index, Index], tuple[Index, int]]] = {
    "greater_equal": lambda x, y: (linear([(x, 1), (y, -1)]), 0),
    "greater": lambda x, y: (linear([(x, 1), (y, -1)]), 1),
    "less_equal": lambda x, y: (linear([(y, 1), (x, -1)]), 0),
    "less": lambda x, y: (linear([(y, 1), (x, -1)]), 1),
}


def _position(node: Node, at: Coordinates, depth: int = 8) -> Index | None:
    """The value of an integer node at these coordinates, if it is a sum of iotas and constants; else None."""
    while node.op in _MOVED:
        ((node, at),) = READS[node.op](node, at)
    if node.op == "iota" and node.dtype.is_integer:
        axis: int = node.attrs["axis"]
        return at[axis]
    if node.op == "constant" and node.dtype.is_integer:
        return constant(node.attrs["value"])
    if node.op in ("add", "subtract") and depth and node.dtype.kind == "int":
        left, right = (_position(operand, at, depth - 1) for operand in node.operands)
        if left is not None and right is not None:
            return linear([(left, 1), (right, 1 if node.op == "add" else -1)])
    return None
