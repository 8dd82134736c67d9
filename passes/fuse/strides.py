"""What is written in order so that a contraction shares its shader with others (`Products.shares_shader`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto

from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import is_strided, lies_in_strides, sizes_of
from lavax.passes.target.target import Products

# The nodes computed for some, and the arrays read for that.
Cone = Callable[[Sequence[Node]], tuple[Collection[Node], Collection[Node]]]


class Way(Enum):
    """What is done with an operand of a contraction's epilogue: computed there, written first, or left to who reads the
    contraction's result."""

    COMPUTED = auto()
    STORED = auto()
    LEFT_OUT = auto()


def scattered_operands(
    dot: Node, cone: Cone, bases: Callable[[Node], Sequence[Node]], products: Products
) -> list[Node] | None:
    """The operands to store in order so that a contraction shares its shader; None if it does not, or not for gain.

    `bases` are what a node is made of by movement in kernels that may write it as it is asked for.
    """
    if not products.shares_shader(dot):
        return None
    found = []
    for side, operand in enumerate(dot.operands):
        computed, arrays = cone([operand])
        if len(arrays) == 1 and lies_in_strides(dot, side, frozenset(computed)):
            continue
        if operand.type.size > sum(array.type.size for array in arrays):  # windows, say
            return None
        sizes = sizes_of(dot)
        is_made_so = len(arrays) == 1 and bool(bases(operand))
        if (sizes.n if side == 0 else sizes.m) < products.worth_sharing and not is_made_so:
            return None
        found.append(operand)
    return found


def way_into_epilogue(
    node: Node, computed: Collection[Node], product: Node, read_apart: bool, products: Products
) -> Way:
    """The way of an operand of `node`, a candidate for the epilogue of `product`, which shares its shader so far.

    `computed` are the nodes the operand is computed by; `read_apart` says that what reads `node` is no single value, to
    which the epilogue could go on.
    """
    others = [other for other in computed if not is_strided(other)]
    is_long = sizes_of(product).k >= products.worth_sharing
    if any(other.op != "iota" and other.type.size >= node.type.size for other in others):
        return Way.STORED if is_long else Way.COMPUTED
    return Way.LEFT_OUT if others and (is_long or read_apart) else Way.COMPUTED
