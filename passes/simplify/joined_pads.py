"""Sums of arrays that are padded with zeros to one shape, of which each element has one at most.

The gradient of an array that is cut into pieces, such as query, key and value of one projection, is such a sum.
"""
from __future__ import annotations

from math import copysign

from lavax.ir.graph import Node, with_operands
from lavax.passes.build.builder import add, concatenate, is_zero, zeros
from lavax.passes.kernels.reads import MOVES
from lavax.passes.simplify.rewriting import RewriteRule

_MOST_PIECES = 32  # as many as short concatenations have
_NARROW_BITS = 16


def _sum_of_pieces(node: Node) -> Node | None:
    """pad(x) + pad(y) + ... -> concatenate(x, y, ...) + 0, where pads leave room for the others along one axis.

    The sum with 0 is left because -0.0 + 0.0 is 0.0; integers have none.
    """
    pieces = None if node.dtype.is_complex else _pieces(node)
    if pieces is None:
        return None
    axes = {axis for piece in pieces for axis in range(node.type.rank) if _extent(piece, axis) < node.shape[axis]}
    if len(axes) != 1:
        return None
    (axis,) = axes
    ordered = sorted(pieces, key=lambda piece: piece.attrs["low"][axis])
    end = 0
    for piece in ordered:
        if piece.attrs["low"][axis] != end:
            return None
        end += _extent(piece, axis)
    if end != node.shape[axis]:
        return None
    joined = concatenate([piece.operands[0] for piece in ordered], axis)
    return add(joined, zeros(joined.type)) if node.dtype.is_inexact else joined


def _without_sum_with_zeros(node: Node) -> Node | None:
    """dot(x + 0, y) -> dot(x, y), in 16 bits: a product's sum begins with 0.0, which no zero of either sign changes.

    So products may read pieces where they are, and nothing has to write them into one array.
    """
    operands = tuple(_without_zeros(operand) for operand in node.operands)
    return None if operands == node.operands else with_operands(node, operands)


def _without_zeros(operand: Node) -> Node:
    if operand.dtype.bits != _NARROW_BITS or not operand.dtype.is_inexact:
        return operand
    if operand.op in MOVES:
        moved = _without_zeros(operand.operands[0])
        return operand if moved is operand.operands[0] else with_operands(operand, (moved,))
    is_joined = operand.op == "add" and operand.operands[0].op == "concatenate" and is_zero(operand.operands[1])
    return operand.operands[0] if is_joined else operand


def _extent(piece: Node, axis: int) -> int:
    return piece.operands[0].shape[axis]


def _pieces(node: Node) -> list[Node] | None:
    """The terms of a sum if all are arrays padded with zeros."""
    found: list[Node] = []
    ahead = list(node.operands)
    while ahead:
        term = ahead.pop()
        if term.op == "add" and len(found) + len(ahead) + 2 <= _MOST_PIECES:
            ahead += term.operands
        elif _is_piece(term):
            found.append(term)
        else:
            return None
    return found


def _is_piece(term: Node) -> bool:
    if term.op != "pad" or term.attrs["value"] != 0 or copysign(1, term.attrs["value"]) < 0:
        return False
    return min(*term.attrs["low"], *term.attrs["high"]) >= 0 and not any(term.attrs["interior"])


RULES: dict[str, tuple[RewriteRule, ...]] = {"add": (_sum_of_pieces,), "dot": (_without_sum_with_zeros,)}
