"""What is written in order so that a contraction shares its shader with others (`Target.shares_products`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto

from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import is_strided, lies_in_strides, sizes_of

# Where an element is read in so many products, or so many products are added up for it, a contraction that shares its
# shader gains more than it takes to write the element in order.
_READ_OVER = 128

# The nodes computed for some, and the arrays read for that.
Cone = Callable[[Sequence[Node]], tuple[Collection[Node], Collection[Node]]]


class Way(Enum):
    """What is done with an operand of a contraction's epilogue: computed there, written first, or left to who reads the
    contraction's result."""

    COMPUTED = auto()
    STORED = auto()
    LEFT_OUT = auto()


def scattered_operands(dot: Node, cone: Cone, bases: Callable[[Node], Sequence[Node]]) -> list[Node] | None:
    """The operands that are to be written in order for a contraction to lie in strides; None where that does not pay.

    `bases` are what a node is made of by movement in kernels that may write it as it is asked for.
    """
    found = []
    for side, operand in enumerate(dot.operands):
        computed, arrays = cone([operand])
        if len(arrays) == 1 and lies_in_strides(dot, side, frozenset(computed)):
            continue
        if operand.type.size > sum(array.type.size for array in arrays):  # windows, say
            return None
        sizes = sizes_of(dot)
        is_made_so = len(arrays) == 1 and bool(bases(operand))
        if (sizes.n if side == 0 else sizes.m) < _READ_OVER and not is_made_so:
            return None
        found.append(operand)
    return found


def way_into_epilogue(node: Node, computed: Collection[Node], product: Node, read_apart: bool) -> Way:
    """The way of an operand of `node`, a candidate for the epilogue of `product`, which shares its shader so far.

    `computed` are the nodes the operand is computed by; `read_apart` says that what reads `node` is no single value, to
    which the epilogue could go on.
    """
    others = [other for other in computed if not is_strided(other)]
    is_long = sizes_of(product).k >= _READ_OVER
    if any(other.op != "iota" and other.type.size >= node.type.size for other in others):
        return Way.STORED if is_long else Way.COMPUTED
    return Way.LEFT_OUT if others and (is_long or read_apart) else Way.COMPUTED
