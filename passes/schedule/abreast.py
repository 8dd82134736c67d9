"""Puts small kernels that wait for the same into one dispatch, each with workgroups of its own.

A dispatch has a cost of its own, which is most of a small kernel's time: the products of a decoded token's query, key
and value are three, and what follows from them are three more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from lavax.passes.fuse.extract import Piece
from lavax.passes.schedule.merge import merge_key
from lavax.passes.target.target import Target


@dataclass(frozen=True)
class KernelsAbreast:
    """What one dispatch takes. Exercised by `python -m benchmarks models` (decoding)."""

    kernels: int = 4  # at most: each invocation branches to its own
    arrays: int = 20  # of all kernels, which have slots in the push constants


KERNELS_ABREAST = KernelsAbreast()
Group = tuple[Piece, ...]


def group_abreast(groups: Sequence[Group], levels: Mapping[Piece, int], target: Target) -> list[Group]:
    """The groups, in the order of their levels, with single pieces of one level joined where the target allows it."""
    found: list[Group] = []
    for _, of_level in groupby(groups, key=lambda group: levels[group[0]]):
        found += _joined(list(of_level), target)
    return found


def is_abreast(group: Group) -> bool:
    """Whether the kernels of a dispatch differ, rather than being the same flat map."""
    keys = {merge_key(piece.kernel) for piece in group}
    return len(group) > 1 and (len(keys) > 1 or None in keys)


def _joined(groups: list[Group], target: Target) -> list[Group]:
    """The groups of one level."""
    if sum(len(group) == 1 for group in groups) < 2:
        return groups
    found: list[list[Piece]] = []
    open_of: dict[Hashable, list[Piece]] = {}  # by key, the pieces that another may join
    for group in groups:
        key = target.dispatches.abreast(group[0].kernel) if len(group) == 1 else None
        others = open_of.get(key)
        if key is not None and others is not None and _fits(others, group[0]):
            others += group
            continue
        found.append(list(group))
        if key is not None:
            open_of[key] = found[-1]
    return [tuple(group) for group in found]


def _fits(others: Sequence[Piece], piece: Piece) -> bool:
    arrays = sum(len(each.reads) + len(each.writes) for each in (*others, piece))
    return len(others) < KERNELS_ABREAST.kernels and arrays <= KERNELS_ABREAST.arrays
