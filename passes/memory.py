"""Where temporaries lie in the arena, and which results take over a donated input's memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from lavax.ir.graph import Node
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.accesses import is_pointwise

# Every device's alignment for storage, and whole cache lines.
_ALIGNMENT = 256

Lifetime = tuple[int, int]  # the first and the last phase in which a buffer is used


def _aligned(size: int) -> int:
    return -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT


def plan_arena(sizes: Mapping[str, int], lifetimes: Mapping[str, Lifetime]) -> tuple[dict[str, int], int]:
    """Offsets of the buffers, and the arena's size; buffers that live in common phases do not overlap.

    Buffers are placed in the order in which their lives begin, each into the lowest gap that holds it.
    """
    offsets: dict[str, int] = {}
    placed: list[tuple[int, int, int]] = []  # offset, end, last phase; by offset
    total = 0
    for name in sorted(lifetimes, key=lambda name: (lifetimes[name][0], -sizes[name], name)):
        first, last = lifetimes[name]
        placed = [entry for entry in placed if entry[2] >= first]
        size, offset = _aligned(sizes[name]), 0
        for start, end, _ in placed:
            if offset + size <= start:
                break
            offset = max(offset, end)
        insort(placed, (offset, offset + size, last))
        offsets[name] = offset
        total = max(total, offset + size)
    return offsets, total


def choose_donors(
    donated: Sequence[Node],
    results: Sequence[tuple[Node, Piece, int]],
    last_read: Mapping[Node, int],
    only: Mapping[Node, Node] | None = None,
) -> dict[Node, Node]:
    """result -> the donated input whose memory it takes.

    `results` gives each result with the piece that writes it and that piece's phase; `last_read` the last phase
    in which an input is read. An input's memory is free for a result written later, or written in the same phase by
    the only piece that reads the input then, element by element. With `only`, a result takes that input or none.
    """
    donors: dict[Node, Node] = {}
    free = list(donated)
    for result, piece, phase in results:
        for donor in free:
            if only is not None and only.get(result) is not donor:
                continue
            if not _same_bytes(donor, result) or not _may_take(donor, result, piece, phase, last_read):
                continue
            donors[result] = donor
            free.remove(donor)
            break
    return donors


def _same_bytes(donor: Node, result: Node) -> bool:
    """Whether both have as many elements, each of as many bytes: element for element they lie at one place."""
    widths = donor.dtype.storage.itemsize == result.dtype.storage.itemsize
    return widths and donor.type.nbytes == result.type.nbytes


def _may_take(donor: Node, result: Node, piece: Piece, phase: int, last_read: Mapping[Node, int]) -> bool:
    last = last_read.get(donor, -1)
    if last != phase or donor not in piece.reads:
        return last < phase
    read = piece.kernel.graph.inputs[piece.reads.index(donor)]
    written = piece.kernel.graph.outputs[piece.writes.index(result)]
    return is_pointwise(piece.kernel, read, written)
