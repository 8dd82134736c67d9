"""Functions in graphs that make the graph of a batch: what vmap asks in place of a function's own operations."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count

from lavax.ir.graph import Graph

_numbers = count()


class BatchingFunction:
    """Makes the graph of a batch, from its size and whether each operand is batched; equal only to itself.

    The graph takes the operands, with the batch axis in front if they are batched; all its outputs have that axis.
    """

    __slots__ = ("batched", "name", "number")

    def __init__(self, name: str, batched: Callable[[int, tuple[bool, ...]], Graph]) -> None:
        self.name = name
        self.batched = cache(batched)
        self.number = next(_numbers)

    def __str__(self) -> str:
        return f"{self.name}#{self.number}"
