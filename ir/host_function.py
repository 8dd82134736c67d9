"""Python functions in graphs: the device cannot run them, so programs are divided where they are called."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

_numbers = count()


class HostFunction:
    """A function of NumPy arrays that returns one array per result; two are equal only if they are the same object.

    `batched` makes the function of a batch, from its size and whether each operand is batched. Without `has_effects` it
    may be called more than once, or not at all.
    """

    __slots__ = ("batched", "call", "has_effects", "name", "number")

    def __init__(
        self,
        name: str,
        call: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]],
        batched: Callable[[int, Sequence[bool]], HostFunction],
        has_effects: bool,
    ) -> None:
        self.name = name
        self.has_effects = has_effects
        self.call = call
        self.batched = batched
        self.number = next(_numbers)

    def __str__(self) -> str:
        return f"{self.name}#{self.number}"
