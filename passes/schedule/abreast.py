"""Puts kernels that wait for the same into one dispatch, each with workgroups of its own.

A dispatch has a cost of its own, which is most of a small kernel's time: the products of a decoded token's query, key
and value are three, and what follows from them are three more. Equal kernels over other arrays, such as the two
products of a gated layer, share their code too, and fill a device together that one of them leaves half idle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import groupby

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.fuse.extract import Piece
from lavax.passes.kernels.kernel import Kernel, kernel_key
from lavax.passes.schedule.merge import merge_key
from lavax.passes.target.target import ARRAYS_TOGETHER, Target


@dataclass(frozen=True)
class KernelsAbreast:
    """What one dispatch takes. Exercised by `python -m benchmarks models` (decoding)."""

    kernels: int = 4  # at most: each invocation branches to its own
    arrays: int = ARRAYS_TOGETHER


KERNELS_ABREAST = KernelsAbreast()
Group = tuple[Piece, ...]


def group_abreast(groups: Sequence[Group], levels: Mapping[Piece, int], target: Target) -> list[Group]:
    """The groups, in the order of their levels, with single pieces of one level joined where the target allows it."""
    found: list[Group] = []
    for _, of_level in groupby(groups, key=lambda group: levels[group[0]]):
        found += _joined(list(of_level), target)
    return found


def is_abreast(group: Group) -> bool:
    """Whether the kernels of a dispatch differ, rather than being the same code over other arrays."""
    return len({_code_key(piece.kernel) for piece in group}) > 1


def _code_key(kernel: Kernel) -> Hashable:
    """Equal for kernels whose dispatch needs one code only."""
    keys = (merge_key(kernel), kernel_key(kernel), kernel)  # no key: it shares its code with no other
    return next(key for key in keys if key is not None)


def _joined(groups: list[Group], target: Target) -> list[Group]:
    """The groups of one level: kernels that one shader serves first, then those that need one each."""
    dispatches = target.dispatches
    together = _joined_by(
        groups, dispatches.same_shader, lambda kernel: KernelsAbreast(len(groups), dispatches.arrays(kernel))
    )
    return _joined_by(together, dispatches.abreast, lambda kernel: KERNELS_ABREAST)


def _joined_by(
    groups: list[Group],
    key_of: Callable[[Kernel], Hashable | None],
    most_like: Callable[[Kernel], KernelsAbreast],
) -> list[Group]:
    """The groups, with single pieces joined whose kernels have the same key."""
    if sum(len(group) == 1 for group in groups) < 2:
        return groups
    found: list[list[Piece]] = []
    open_of: dict[Hashable, list[Piece]] = {}  # by key, the pieces that another may join
    for group in groups:
        key = key_of(group[0].kernel) if len(group) == 1 else None
        others = open_of.get(key)
        if key is not None and others is not None and _fit((*others, *group), most_like(group[0].kernel)):
            others += group
            continue
        found.append(list(group))
        if key is not None:
            open_of[key] = found[-1]
    return [tuple(group) for group in found]


def _fit(pieces: Sequence[Piece], most: KernelsAbreast) -> bool:
    arrays = sum(len(piece.reads) + len(piece.writes) for piece in pieces)
    return len(pieces) <= most.kernels and arrays <= most.arrays
