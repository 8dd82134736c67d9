"""What the rewrites before fusion ask about the device that kernels are made for. Backends give the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lavax.ir.graph import Node
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS


def _one_part(dot: Node) -> int:
    return 1


def _nowhere(node: Node) -> bool:
    return False


def _rounded_where_it_is_read(dot: Node, side: int) -> bool:
    return False


def _as_a_whole(node: Node) -> int | None:
    return None


@dataclass(frozen=True)
class Target:
    """`parts`: into how many parts the sum of a contraction is best split, so that a device is busy with them all.

    `stages_operands`: whether contractions bring both operands into one order in shared memory, so that it does not
    matter which of them stands on the left, but that neighbours in memory are neighbours in the contraction.
    `stores_rounded`: whether what a contraction's left (0) or right (1) operand is rounded to is best stored before,
    since it is read so often.
    `stores_scores`: whether a derivative of attention is best computed by contractions, with scores in memory;
    `kept_bytes`: how much memory the scores of all attention may take that wait there for derivatives;
    `scores_by_rows`: whether what is made of stored scores is made by kernels over their rows, and not in products'
    epilogues.

    `shares_products`: whether a contraction shares its shader with others if its arrays lie in strides, so that it pays
    to write an operand in order once, and to leave out of its epilogue what would keep it from that.

    `chunk`: in chunks of how many elements a cumulative operation is best done; None where it goes along whole lines.
    `query_parts`: for how many keys each the kernel of keys' gradients is to compute a part of the gradient of
    attention's queries; None where that has a kernel of its own.

    `vectors_as_sums`: whether the product of a large matrix and a vector is best a sum over the matrix's rows, too.

    `sorts_pairs`: whether radix sort can move keys together with what goes along, in integers of 64 bits.

    `longest_row`: rows of more neighbouring elements are reduced in parts, however many rows there are.

    `operations_a_byte`: how many simple operations are worth computing again to save the moving of a byte; 0 where
    that does not pay.
    """

    parts: Callable[[Node], int] = _one_part
    stages_operands: bool = False
    stores_rounded: Callable[[Node, int], bool] = _rounded_where_it_is_read
    stores_scores: Callable[[Node], bool] = _nowhere
    kept_bytes: int = 0
    scores_by_rows: bool = False
    shares_products: Callable[[Node], bool] = _nowhere
    chunk: Callable[[Node], int | None] = _as_a_whole
    query_parts: Callable[[Node], int | None] = _as_a_whole
    vectors_as_sums: bool = False
    sorts_pairs: bool = True
    longest_row: int = MAX_LOOP_ITERATIONS
    operations_a_byte: float = 0.0


ANY_DEVICE = Target()
