"""Dots: removes axes of extent 1, uses operands as they lie in memory, and replaces dots that need no contraction."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    broadcast,
    cast,
    dot,
    free_axes_of,
    multiply,
    precision_of,
    reshape,
    sum_over,
    transpose,
)
from lavax.passes.build.matching import without_units
from lavax.passes.numerics.widen import wide_float
from lavax.passes.simplify.arithmetic import negation_outward
from lavax.passes.simplify.rewriting import RewriteRule

Axes = tuple[int, ...]


def _pairs(node: Node, name: str) -> list[tuple[int, int]]:
    """The pairs of axes that an attribute names."""
    left, right = node.attrs[name]
    return list(zip(left, right, strict=True))


def _sides(pairs: Sequence[tuple[int, int]]) -> tuple[Axes, Axes]:
    return tuple(left for left, _ in pairs), tuple(right for _, right in pairs)


def _without_units(node: Node) -> Node | None:
    """Leaves axes of extent 1 to a reshape of the result."""
    left, right = node.operands
    if 1 not in left.shape and 1 not in right.shape:
        return None
    kept = [[axis for axis, extent in enumerate(operand.shape) if extent != 1] for operand in (left, right)]

    def renumbered(name: str) -> tuple[Axes, Axes]:
        pairs = [(kept[0].index(a), kept[1].index(b)) for a, b in _pairs(node, name) if left.shape[a] != 1]
        return _sides(pairs)

    squeezed = [reshape(operand, without_units(operand.shape)) for operand in (left, right)]
    less = dot(squeezed[0], squeezed[1], renumbered("contract"), renumbered("batch"), **precision_of(node))
    return reshape(less, node.shape)


def _contract_in_order(node: Node) -> Node | None:
    """Sorts the pairs of contracted axes by the left operand's axes."""
    if len(node.attrs["contract"][0]) < 2:
        return None
    left, right = node.operands
    pairs = _sides(sorted(_pairs(node, "contract")))
    if pairs == node.attrs["contract"]:
        return None
    return dot(left, right, pairs, node.attrs["batch"], **precision_of(node))


def of_transpose(node: Node) -> Node | None:
    """dot(transpose(x), y) -> dot(x, y) over other axes, if the free axes of x keep their order."""
    for side, operand in enumerate(node.operands):
        if operand.op != "transpose":
            continue
        places, free = operand.attrs["axes"], free_axes_of(node)[side]
        if [places[axis] for axis in free] == sorted(places[axis] for axis in free):
            operands, attrs = list(node.operands), {}
            operands[side] = operand.operands[0]
            for name in ("contract", "batch"):
                axes = list(node.attrs[name])
                axes[side] = tuple(places[axis] for axis in axes[side])
                attrs[name] = (axes[0], axes[1])
            return dot(operands[0], operands[1], attrs["contract"], attrs["batch"], **precision_of(node))
    return None


def _of_repeated_batch(node: Node) -> Node | None:
    """Uses a right operand without its broadcast over batch axes, if these precede the left operand's free axes."""
    left, right = node.operands
    if right.op != "broadcast":
        return None
    (x,) = right.operands
    batch, (free, _) = _pairs(node, "batch"), free_axes_of(node)
    repeated = [pair for pair in batch if pair[1] not in right.attrs["axes"]]
    stays = [pair for pair in batch if pair not in repeated]
    order = [a for a, _ in stays] + sorted((*free, *(a for a, _ in repeated)))
    if not repeated or order != [a for a, _ in batch] + list(free):
        return None
    gone = {axis for _, axis in repeated}
    kept = [axis for axis in range(right.type.rank) if axis not in gone]
    less = broadcast(x, [right.shape[axis] for axis in kept], [kept.index(axis) for axis in right.attrs["axes"]])
    renumbered = [(a, kept.index(b)) for a, b in stays]
    contract = [(a, kept.index(b)) for a, b in _pairs(node, "contract")]
    return dot(left, less, _sides(contract), _sides(renumbered), **precision_of(node))


def as_product(node: Node) -> Node | None:
    """A dot that sums over no axes -> a product of broadcasts, unless it rounds its operands."""
    if node.attrs["contract"] != ((), ()) or node.attrs["precision"]:
        return None
    free, batch = free_axes_of(node), node.attrs["batch"]
    count = len(batch[0])
    places = [
        [*range(count), *range(count, count + len(free[0]))],
        [*range(count), *range(count + len(free[0]), node.type.rank)],
    ]
    factors = [
        broadcast(transpose(operand, [*batch[side], *free[side]]), node.shape, places[side])
        for side, operand in enumerate(node.operands)
    ]
    return multiply(factors[0], factors[1])


def _sum_of_products(node: Node) -> Node | None:
    """A dot without free axes -> a sum of an elementwise product, unless it rounds its operands.

    16-bit floats are multiplied and added in 32 bits.
    """
    left, right = node.operands
    met = len(node.attrs["batch"][0]) + len(node.attrs["contract"][0])
    if left.type.rank != met or right.type.rank != met or node.attrs["precision"]:
        return None
    meets = dict(_pairs(node, "batch") + _pairs(node, "contract"))
    held = wide_float(node.dtype)
    turned = transpose(right, [meets[axis] for axis in range(left.type.rank)])
    summed = sum_over(multiply(cast(left, held), cast(turned, held)), node.attrs["contract"][0])
    batch = node.attrs["batch"][0]
    return transpose(cast(summed, node.dtype), [sorted(batch).index(axis) for axis in batch])


def transpose_of_dot(node: Node) -> Node | None:
    """transpose(dot(x, y)) -> dot(y, x) or a dot with batch axes in another order, if either gives the same axes."""
    (product,) = node.operands
    if product.op != "dot":
        return None
    left, right = product.operands
    axes, batch, (free, _) = node.attrs["axes"], _pairs(product, "batch"), free_axes_of(product)
    count, middle = len(batch), len(batch) + len(free)
    of_left, of_right = tuple(range(count, middle)), tuple(range(middle, node.type.rank))
    if sorted(axes[:count]) != list(range(count)):
        return None
    pairs, contract = [batch[axis] for axis in axes[:count]], product.attrs["contract"]
    if axes[count:] == of_left + of_right:
        return dot(left, right, contract, _sides(pairs), **precision_of(product))
    if axes[count:] == of_right + of_left:
        return dot(right, left, contract[::-1], _sides(pairs)[::-1], **precision_of(product))
    return None


def sum_over_batch(node: Node) -> Node | None:
    """sum(dot(x, y)) over batch axes of the dot -> a dot that contracts these axes too, as in the gradients of keys
    and values that several heads share."""
    (product,) = node.operands
    if product.op != "dot":
        return None
    batch, axes = _pairs(product, "batch"), node.attrs["axes"]
    if any(axis >= len(batch) for axis in axes):
        return None
    kept = [pair for axis, pair in enumerate(batch) if axis not in axes]
    summed = _pairs(product, "contract") + [batch[axis] for axis in axes]
    left, right = product.operands
    return dot(left, right, _sides(sorted(summed)), _sides(kept), **precision_of(product))


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "dot": (
        _without_units,
        as_product,
        _sum_of_products,
        _contract_in_order,
        of_transpose,
        _of_repeated_batch,
        negation_outward,
    ),
}
