"""Places kernels that no other waits for, such as an optimizer's updates, beside products.

They wait for memory, as norms and other rows do, and beside these they take their own time. Products leave memory idle,
and their last tiles leave processors idle. So an update is dispatched in a level with many products, and behind them:
it gets what they leave.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.kernel import Kernel, once_a_kernel


@dataclass(frozen=True)
class BesideProducts:
    """Which kernels are placed, and how many levels they wait. Exercised by `python -m benchmarks models`."""

    nbytes: int = 1 << 18  # that a kernel reads and writes at least
    levels: int = 15


BESIDE_PRODUCTS = BesideProducts()
_KINDS = frozenset({"map", "row"})


def levels_beside_products(levels: Mapping[Piece, int], waited_for: Collection[Piece]) -> dict[Piece, int]:
    """New levels, none earlier, of such kernels that find products: where there are most for each byte that the kernel
    and those that are placed there before it move."""
    products: dict[int, int] = {}
    for piece, level in levels.items():
        products[level] = products.get(level, 0) + products_of(piece.kernel)
    moved: dict[int, int] = {}
    found: dict[Piece, int] = {}
    last = [piece for piece in levels if piece not in waited_for and piece.kind in _KINDS]
    for piece in sorted(last, key=lambda piece: levels[piece]):
        nbytes = sum(node.type.nbytes for node in (*piece.reads, *piece.writes))
        within = range(levels[piece], levels[piece] + BESIDE_PRODUCTS.levels + 1)
        possible = [level for level in within if products.get(level, 0)]
        if possible and nbytes >= BESIDE_PRODUCTS.nbytes:
            found[piece] = max(possible, key=lambda level: products[level] / (moved.get(level, 0) + nbytes))
            moved[found[piece]] = moved.get(found[piece], 0) + nbytes
    return found


@once_a_kernel
def products_of(kernel: Kernel) -> int:
    """How many products a kernel of contractions computes."""
    dots = [node for node in kernel.graph.nodes if node.op == "dot" and kernel.kind == "contract"]
    return sum(sizes.b * sizes.m * sizes.n * sizes.k for sizes in map(sizes_of, dots))
