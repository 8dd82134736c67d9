"""Moves elementwise operations before the movement that all their operands share.

If the movement is a broadcast, fewer elements are computed. Movement also comes next to other movement, reductions and
dots, into which it can be folded.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.types import TensorType
from lavax.passes.build.builder import broadcast, build, reshape, splat, transpose
from lavax.passes.build.matching import is_splat, splat_value
from lavax.passes.simplify.rewriting import RewriteRule

_AGAIN: dict[str, Callable[[Node, Node], Node]] = {
    "broadcast": lambda x, like: broadcast(x, like.shape, like.attrs["axes"]),
    "reshape": lambda x, like: reshape(x, like.shape),
    "transpose": lambda x, like: transpose(x, like.attrs["axes"]),
}


def _moved_alike(x: Node, y: Node) -> bool:
    return x.op == y.op and x.operands[0].shape == y.operands[0].shape and x.attrs == y.attrs


def before_movement(node: Node) -> Node | None:
    """op(move(x), move(y), splat) -> move(op(x, y, splat)) for broadcast, reshape and transpose."""
    moved = None
    for operand in node.operands:
        if not is_splat(operand):
            moved = operand
            break
    if moved is None or moved.op not in _AGAIN:
        return None
    if not all(is_splat(operand) or _moved_alike(operand, moved) for operand in node.operands):
        return None
    shape = moved.operands[0].shape
    still = [
        splat(splat_value(operand), TensorType(shape, operand.dtype)) if is_splat(operand) else operand.operands[0]
        for operand in node.operands
    ]
    declared = TensorType(shape, node.dtype)
    return _AGAIN[moved.op](build(node.op, *still, type=declared, **node.attrs), moved)


RULES: tuple[RewriteRule, ...] = (before_movement,)
