"""The known signs of floats, and the cheaper forms of operations that they allow.

A sign holds for every element except NaN. Zeros of either sign are neither positive nor negative.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Flag, auto

from lavax.ir.graph import Graph, Node, make_node
from lavax.passes.build.rebuild import rebuilt


class Sign(Flag):
    """The property that no element has; for zeros, both flags hold."""

    UNKNOWN = 0
    NOT_POSITIVE = auto()
    NOT_NEGATIVE = auto()


SignRule = Callable[[Node, Sequence[Sign]], Sign]


def _opposite(sign: Sign) -> Sign:
    found = Sign.NOT_NEGATIVE if Sign.NOT_POSITIVE in sign else Sign.UNKNOWN
    return found | Sign.NOT_POSITIVE if Sign.NOT_NEGATIVE in sign else found


def _constant(node: Node, signs: Sequence[Sign]) -> Sign:
    value = node.attrs["value"]
    found = Sign.NOT_POSITIVE if value <= 0 else Sign.UNKNOWN
    return found | Sign.NOT_NEGATIVE if value >= 0 else found


def _subtract(node: Node, signs: Sequence[Sign]) -> Sign:
    known = signs[0] & _opposite(signs[1])
    return known | Sign.NOT_POSITIVE if _is_less_its_maximum(node) else known


def _is_less_its_maximum(node: Node) -> bool:
    """Whether the node is x - max(x), with the maximum over some axes of x broadcast along them again."""
    x, repeated = map(_origin, node.operands)
    if repeated.op != "broadcast":
        return False
    greatest = _origin(repeated.operands[0])
    if greatest.op != "max" or _origin(greatest.operands[0]) is not x:
        return False
    axes = greatest.attrs["axes"]
    return bool(repeated.attrs["axes"] == tuple(axis for axis in range(x.type.rank) if axis not in axes))


def _origin(node: Node) -> Node:
    """The node with the same values before markers and conversions to wider floats."""
    while node.op == "stop_gradient" or (node.op == "cast" and _is_wider(node)):
        (node,) = node.operands
    return node


def _is_wider(cast: Node) -> bool:
    source = cast.operands[0].dtype
    return source.is_float and cast.dtype.is_float and cast.dtype.bits > source.bits


def _multiply(node: Node, signs: Sequence[Sign]) -> Sign:
    left, right = signs
    if node.operands[0] is node.operands[1]:
        return Sign.NOT_NEGATIVE
    opposite = _opposite(left) & right
    alike = left & right
    found = Sign.NOT_POSITIVE if opposite else Sign.UNKNOWN
    return found | Sign.NOT_NEGATIVE if alike else found


def _extremum(wins: Sign) -> SignRule:
    """The rule of an extremum towards a sign: that sign needs one operand that has it, the other sign needs both."""
    return lambda node, signs: (signs[0] | signs[1]) & wins | signs[0] & signs[1]


def _cast(node: Node, signs: Sequence[Sign]) -> Sign:
    return signs[0] if node.operands[0].dtype.is_float else Sign.UNKNOWN


_SAME: SignRule = lambda node, signs: signs[0]  # noqa: E731
_NEVER_NEGATIVE: SignRule = lambda node, signs: Sign.NOT_NEGATIVE  # noqa: E731

_RULES: dict[str, SignRule] = {
    "constant": _constant,
    "add": lambda node, signs: signs[0] & signs[1],
    "subtract": _subtract,
    "multiply": _multiply,
    "negate": lambda node, signs: _opposite(signs[0]),
    "maximum": _extremum(Sign.NOT_NEGATIVE),
    "minimum": _extremum(Sign.NOT_POSITIVE),
    "where": lambda node, signs: signs[1] & signs[2],
    "cast": _cast,
    **dict.fromkeys(("reshape", "transpose", "broadcast", "slice", "flip", "stop_gradient", "sum"), _SAME),
    **dict.fromkeys(("abs", "sqrt", "exp", "exp2", "logistic", "cosh", "erfc"), _NEVER_NEGATIVE),
}


def signs_of(values: Iterable[Node]) -> dict[Node, Sign]:
    """The signs of values, and of all that those follow from; nothing is known of an input."""
    found: dict[Node, Sign] = {}
    path = list(values)
    while path:
        node = path[-1]
        rule = _RULES.get(node.op) if node.type.dtype.is_float else None
        unknown = [operand for operand in node.operands if operand not in found] if rule else ()
        if unknown:
            path += unknown
            continue
        found[node] = rule(node, [found[operand] for operand in node.operands]) if rule else Sign.UNKNOWN
        path.pop()
    return found


def by_signs(graph: Graph) -> Graph:
    """The graph in which exponentials of operands that are never positive are marked: they cannot overflow."""
    exponentials = [node for node in graph.nodes if node.op == "exp"]
    signs = signs_of(node.operands[0] for node in exponentials)
    marked = {node for node in exponentials if Sign.NOT_POSITIVE in signs[node.operands[0]]}
    if not marked:
        return graph

    def with_mark(node: Node, new: Node) -> Node:
        return make_node("exp", new.operands, {"nonpositive": True}, new.type, new.location) if node in marked else new

    return rebuilt(graph, with_mark)
