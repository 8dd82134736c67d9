"""Wide values that one kernel would write for others, computed by those from less.

A batch norm's deviations are float32. Its gradient reads them, but they are what a convolution's result in 16 bits is
less a number per channel. If the kernel that reads them reads that result, four bytes an element are not written,
and two of them read in place of four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node, topological
from lavax.passes.fuse.costs import cost_of
from lavax.passes.fuse.extract import Piece


@dataclass(frozen=True)
class WideValues:
    """Which values are looked at. Exercised by `python -m benchmarks models`."""

    bits: int = 32
    elements: int = 1 << 14  # at least: those of few take no time to write


_WIDE_VALUES = WideValues()
_READERS = frozenset(("map", "row"))
Bases = frozenset[Node]  # the arrays that a value is computed from


@dataclass(frozen=True)
class Recomputed:
    """A value that a kernel computes from `bases`, after `anchor` has been written."""

    bases: Bases
    anchor: Node


def wide_values(
    pieces: Sequence[Piece],
    written: Mapping[Node, int],
    bases_of: Callable[[Node, Set[Node]], Bases | None],
    operations_per_byte: float,
    repeated: Set[Node] = frozenset(),
) -> dict[Node, dict[Piece, Recomputed]]:
    """The values that need not be written, and for each how the kernels compute it that would read it.

    `written` has the position in time of each array that kernels write, of which those that would be `repeated` for
    very many elements stay; `bases_of` finds those of a set of arrays, but the value itself, from which a value can be
    computed, if any.
    """
    readers: dict[Node, list[Piece]] = {}
    for piece in pieces:
        for node in piece.reads:
            readers.setdefault(node, []).append(piece)
    found: dict[Node, dict[Piece, Recomputed]] = {}
    needed: set[Node] = set()
    kept = set(written)
    for node in _candidates(pieces, written, readers):
        bases = None if node in needed or node in repeated else bases_of(node, kept)
        if bases is None or not _pays(node, bases, readers[node], operations_per_byte):
            continue
        anchors = {piece: _anchor(node, bases, piece, written) for piece in readers[node]}
        if all(anchor is not None for anchor in anchors.values()):
            found[node] = {piece: Recomputed(bases, anchor) for piece, anchor in anchors.items() if anchor is not None}
            kept.discard(node)
            needed |= bases
    return found


def _candidates(
    pieces: Sequence[Piece], written: Mapping[Node, int], readers: Mapping[Node, Sequence[Piece]]
) -> Iterator[Node]:
    for piece in pieces:
        for node in piece.writes:
            is_wide = node.dtype.is_float and node.dtype.bits == _WIDE_VALUES.bits
            if node in written and is_wide and node.type.size >= _WIDE_VALUES.elements:
                of = readers.get(node)
                if of and all(reader.kind in _READERS for reader in of):
                    yield node


def _pays(node: Node, bases: Bases, readers: Sequence[Piece], operations_per_byte: float) -> bool:
    """Whether fewer bytes are moved, and enough fewer for the operations."""
    more = sum(base.type.nbytes for piece in readers for base in bases if base not in piece.reads)
    saved = node.type.nbytes * (1 + len(readers)) - more
    cost = sum(map(cost_of, topological([node], stop=bases))) * node.type.size * len(readers)
    return saved > 0 and cost <= saved * operations_per_byte


def _anchor(node: Node, bases: Bases, reader: Piece, written: Mapping[Node, int]) -> Node | None:
    """The last array that a kernel waits for in any case; None if that may be written before the value would be, so
    that the kernel that wrote the value might as well compute it again."""
    waited = (array for array in (*reader.reads, *bases) if array in written and array is not node and array.type.size)
    last = max(waited, key=written.__getitem__, default=None)
    return last if last is not None and written[last] >= written[node] else None
