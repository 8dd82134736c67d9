"""The operands that are written in order so that a contraction can share its shader with others
(`Products.shares_shader`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto

from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import is_strided, lies_in_strides, sizes_of
from lavax.passes.target.target import Products

# Gives the nodes computed for some values, and the arrays read for that.
Cone = Callable[[Sequence[Node]], tuple[Collection[Node], Collection[Node]]]


class OperandUse(Enum):
    """How an operand of a contraction's epilogue is provided: computed there, or stored first. It is left out if the
    readers of the contraction's result compute it."""

    COMPUTED = auto()
    STORED = auto()
    LEFT_OUT = auto()


def scattered_operands(
    dot: Node, cone: Cone, bases: Callable[[Node], Sequence[Node]], products: Products
) -> list[Node] | None:
    """The operands to store in order so that a contraction shares its shader; None if it cannot or does not gain.

    `bases` gives the members of kernels that a node is made of by movement; those kernels can write it in any order.
    """
    if not products.shares_shader(dot):
        return None
    found = []
    for side, operand in enumerate(dot.operands):
        computed, arrays = cone([operand])
        if len(arrays) == 1 and lies_in_strides(dot, side, frozenset(computed)):
            continue
        if operand.type.size > sum(array.type.size for array in arrays):  # a convolution's windows, for example
            return None
        sizes = sizes_of(dot)
        is_made_so = len(arrays) == 1 and bool(bases(operand))
        if (sizes.n if side == 0 else sizes.m) < products.worth_sharing and not is_made_so:
            return None
        found.append(operand)
    return found


def use_in_epilogue(
    node: Node, computed: Collection[Node], product: Node, read_apart: bool, products: Products
) -> OperandUse:
    """How to provide an operand of `node`, a candidate for the epilogue of `product`, which shares its shader so far.

    `computed` holds the nodes that compute the operand. `read_apart` says that the readers of `node` do not converge
    to a single value with which the epilogue could continue.
    """
    others = [other for other in computed if not is_strided(other)]
    is_long = sizes_of(product).k >= products.worth_sharing
    if any(other.op != "iota" and other.type.size >= node.type.size for other in others):
        return OperandUse.STORED if is_long else OperandUse.COMPUTED
    return OperandUse.LEFT_OUT if others and (is_long or read_apart) else OperandUse.COMPUTED
