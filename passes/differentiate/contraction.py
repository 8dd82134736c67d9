"""Gradients of sums of products."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import dot, free_axes_of, precision_of_gradient, transpose
from lavax.passes.differentiate.gradient_rule import GradientRule


def _dot(node: Node, g: Node, position: int) -> Node:
    """Contracts the cotangent with the other operand over that operand's free axes, in the order that fits best."""
    own, other = position, 1 - position
    batch, contract = node.attrs["batch"], node.attrs["contract"]
    free = free_axes_of(node)
    batches, first = len(batch[0]), len(batch[0]) + len(free[0])
    free_in_g = (range(batches, first), range(first, node.type.rank))
    contracted, batched = (free_in_g[other], free[other]), (range(batches), batch[other])
    # The free axes of the product: the operand's own, from the cotangent, and the contracted ones, from the other
    # operand and in its order.
    meets = dict(zip(contract[other], contract[own], strict=True))
    from_other = [meets[axis] for axis in sorted(meets)]
    rounding = precision_of_gradient(node)
    other_first = [*batch[own], *from_other, *free[own]]
    if other_first == sorted(other_first):
        return dot(node.operands[other], g, contracted[::-1], batched[::-1], **rounding)
    order = [*batch[own], *free[own], *from_other]
    product = dot(g, node.operands[other], contracted, batched, **rounding)
    return transpose(product, sorted(range(len(order)), key=order.__getitem__))


RULES: dict[str, GradientRule] = {"dot": _dot}
