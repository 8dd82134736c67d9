"""Movement that forms windows, and slices of reductions."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.ir.ops.contraction import free_axes
from lavax.ir.ops.elementwise import COMPARISONS
from lavax.passes.build.builder import build, reduce, slice_, transposed, where, zeros
from lavax.passes.build.matching import is_value, other_axes
from lavax.passes.simplify import folding
from lavax.passes.simplify.rewriting import RewriteRule


def _unshear_of_selection(node: Node) -> Node | None:
    """unshear(where(c, x, 0)) -> where(unshear(c), unshear(x), 0), so that the selection is not stored before it moves.

    If c is a comparison, its operands are moved. Where the result has no element, c may be either, because x is zero.
    """
    (selection,) = node.operands
    if selection.op != "where" or not is_value(selection.operands[2], 0):
        return None

    def moved(part: Node) -> Node:
        return build("unshear", part, type=node.type.with_dtype(part.dtype), **node.attrs)

    condition, x, _ = selection.operands
    compares = condition.op in COMPARISONS
    chosen = build(condition.op, *map(moved, condition.operands)) if compares else moved(condition)
    return where(chosen, moved(x), zeros(node.type))


def conv_of_transpose(node: Node) -> Node | None:
    """conv(transpose(x), y) -> conv(x, y) over other axes, if the free axes of x keep their order or the result is
    smaller to transpose. Windows then have the layout of x in memory."""
    moved = node.operands[0]
    if moved.op != "transpose":
        return None
    kept = _kept(node)
    if kept != sorted(kept) and node.type.size >= moved.type.size:
        return None
    return conv_over_moved(node)


def conv_over_moved(node: Node) -> Node:
    """conv(transpose(x), y) as conv(x, y) over other axes, transposed if the free axes of x change their order."""
    moved, right = node.operands
    (x,), places = moved.operands, moved.attrs["axes"]
    attrs = dict(node.attrs)
    for name in ("window", "contract", "batch"):
        of_left, of_right = node.attrs[name]
        attrs[name] = tuple(places[axis] for axis in of_left), of_right
    kept, first = _kept(node), len(node.attrs["batch"][0])
    order = [first + sorted(kept).index(axis) for axis in kept]
    pulled = build("conv", x, right, **attrs)
    return transposed(pulled, [*range(first), *order, *range(first + len(kept), node.type.rank)])


def _kept(node: Node) -> list[int]:
    """The axes of x that are those of the result, in its order."""
    moved = node.operands[0]
    free = free_axes(moved.type, node.attrs["batch"][0], node.attrs["contract"][0])
    return [moved.attrs["axes"][axis] for axis in free]


def slice_of_reduction(node: Node) -> Node | None:
    """slice(sum(x)) -> sum(slice(x)), which sums only what is needed; the same for prod, max, min."""
    (folded,) = node.operands
    if folded.op not in ("sum", "prod", "max", "min"):
        return None
    (x,) = folded.operands
    axes = folded.attrs["axes"]
    start, limit, stride = [0] * x.type.rank, list(x.shape), [1] * x.type.rank
    for place, axis in enumerate(other_axes(x.type.rank, axes)):
        start[axis], limit[axis], stride[axis] = (node.attrs[name][place] for name in ("start", "limit", "stride"))
    return reduce(folded.op, slice_(x, start, limit, stride), axes)


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "conv": (conv_of_transpose,),
    "shear": (folding.movement,),
    "unshear": (_unshear_of_selection,),
}
# For nodes that are the only users of their operand.
MERGING: dict[str, tuple[RewriteRule, ...]] = {"slice": (slice_of_reduction,)}
