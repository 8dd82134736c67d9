"""Places of true elements, of which `nonzero` asks by a search in running counts.

A search bisects all counts for each place. Where updates are joined to their places in memory (CPU drivers), each true
element writes its own position instead, at its count.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.passes.build.builder import index_type, iota, reshaped, scatter, splat, subtract, where
from lavax.passes.prepare.decompose.scatter import RULES as SCATTER
from lavax.passes.target.target import Target

# With fewer elements a search takes as long.
_LEAST_ELEMENTS = 1 << 13
_COUNTS = ("cumulative_sum", "cumulative_chunks")


def _search(node: Node, target: Target) -> Node:
    counts, wanted = node.operands
    mask = _counted(counts)
    asks = mask is not None and not node.attrs["right"] and _counts_from_one(wanted)
    if mask is None or not asks or "i32" not in target.scatters.joined_in_place or mask.type.size < _LEAST_ELEMENTS:
        return node
    (length,), (many,) = wanted.shape, mask.shape
    places = where(mask, subtract(counts, splat(1, counts.type)), splat(-1, counts.type))  # those outside are dropped
    nowhere = splat(many, index_type((length,)))
    found = scatter("minimum", nowhere, iota(counts.type, 0), [places], (0,))
    return SCATTER[found.op](found, target)


def _counted(counts: Node) -> Node | None:
    """The truth values of one axis whose running counts these are."""
    is_sum = counts.op == "cumulative_sum" or counts.attrs.get("fold") == "cumulative_sum"
    if counts.op not in _COUNTS or not is_sum or counts.attrs["reverse"] or counts.type.rank != 1:
        return None
    summed = counts.operands[0]
    cast = summed.operands[0] if summed.op == "reshape" else summed
    if cast.op != "cast" or cast.operands[0].dtype.kind != "bool":
        return None
    return reshaped(cast.operands[0], summed.shape)


def _counts_from_one(wanted: Node) -> bool:
    """Whether the values are 1, 2, 3 and so on."""
    if wanted.op != "add" or wanted.type.rank != 1:
        return False
    first, second = wanted.operands
    return first.op == "iota" and second.op == "constant" and second.attrs["value"] == 1


RULES: dict[str, Callable[[Node, Target], Node]] = {"search_sorted": _search}
