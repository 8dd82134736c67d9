"""An array with new rows, read before they are written: the rows from where they come, all others from the array.

A new token's key and value are written to a cache, and attention to all keys needs no kernel that writes first: whoever
reads a place of the cache can tell whether it is the new one. The write has nobody that waits for it then.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node, make_node
from lavax.ir.types import float32
from lavax.passes.build.builder import broadcast, cast, equal, index_type, iota, reshaped, transposed, where
from lavax.passes.kernels.index import Index, variable
from lavax.passes.kernels.reads import counted
from lavax.passes.numerics.narrow_movement import is_widening

_MOVES = frozenset(("reshape", "transpose", "broadcast", "slice", "flip"))


def read_before_writing(node: Node) -> Node:
    """The same value without the write, if it is an array with one new row, or one for each entry of a batch, as it is
    or moved or widened; else the node."""
    moves: list[Node] = []
    written = node
    while written.op in _MOVES or is_widening(written):
        moves.append(written)
        (written,) = written.operands
    found = _merged(written) if written.op == "scatter_set" else None
    if found is None:
        return node
    for move in reversed(moves):
        if move.op != "cast":
            found = make_node(move.op, (found,), move.attrs, move.type.with_dtype(found.dtype), move.location)
    return found if found.dtype == node.dtype else cast(found, node.dtype)


def _merged(scatter: Node) -> Node | None:
    """Where each element comes from, in 32 bits; None unless updates are one row, or one for each entry of some axes.
    """
    array, updates, *indices = scatter.operands
    axes, places = scatter.attrs["axes"], indices[0].shape
    entries: dict[int, int] = {}  # axis of the array whose entries have a row each -> axis of the indices
    written: list[tuple[int, Node]] = []
    for axis, index in zip(axes, indices, strict=True):
        own = _counts_over(index, array.shape[axis])
        if own is None:
            written.append((axis, index))
        elif own >= 0:
            entries[axis] = own
    several = [d for d, extent in enumerate(places) if extent > 1]
    if len(written) != 1 or sorted(entries.values()) != several:
        return None
    ((axis, index),) = written
    of_entries = [next(each for each, d in entries.items() if d == place) for place in several]
    window = [each for each in range(array.type.rank) if each not in axes]
    extents = tuple(places[d] for d in several)
    place = _repeated(reshaped(index, extents), array.shape, of_entries)
    row = reshaped(updates, (*extents, *(array.shape[each] for each in window)))
    is_new = equal(iota(index_type(array.shape), axis), place)
    new = _repeated(row, array.shape, [*of_entries, *window])
    return where(is_new, _in_full(new), _in_full(array))


def _counts_over(index: Node, extent: int) -> int | None:
    """The axis of an index operand along which it counts all entries of an axis; -1 if that has one; else None."""
    at = tuple(variable(f"i{axis}", size) for axis, size in enumerate(index.shape))
    found = counted(index, at)
    if found is None:
        return None
    if extent == 1 and found == Index((), 0):
        return -1
    return at.index(found) if found in at and index.shape[at.index(found)] == extent else None


def _repeated(x: Node, shape: Sequence[int], axes: Sequence[int]) -> Node:
    """An array whose axes are these of the shape, in any order."""
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return broadcast(transposed(x, order), shape, sorted(axes))


def _in_full(x: Node) -> Node:
    return cast(x, float32) if x.dtype.is_float and x.dtype.bits < 32 else x
