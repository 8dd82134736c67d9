"""What the rewrites before fusion ask about the device that kernels are made for. Backends give the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lavax.ir.graph import Node


def _one_part(dot: Node) -> int:
    return 1


def _nowhere(attention: Node) -> bool:
    return False


@dataclass(frozen=True)
class Target:
    """`parts`: into how many parts the sum of a contraction is best split, so that a device is busy with them all.
    `stores_scores`: whether attention, or a derivative of it, is best computed by contractions, with scores in memory.
    """

    parts: Callable[[Node], int] = _one_part
    stores_scores: Callable[[Node], bool] = _nowhere


ANY_DEVICE = Target()
