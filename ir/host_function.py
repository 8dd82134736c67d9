"""Python functions in graphs: the device cannot run them, so programs are divided where they are called."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from lavax.ir.types import TensorType

HostCall = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
ResultTypes = Callable[[Sequence[TensorType]], Sequence[TensorType]]
_numbers = count()
_routines: dict[str, HostFunction] = {}


class HostFunction:
    """A function of NumPy arrays that returns one array per result; two are equal only if they are the same object.

    `batched` makes the function of a batch, from its size and whether each operand is batched; None is for functions
    that take batches as they are, with all operands repeated along them. Without `has_effects` it may be called more
    than once, or not at all. A routine has `results`, the types of its results by those of its operands: it is known by
    its name in every process, so texts and files may hold it.
    """

    __slots__ = ("batched", "call", "has_effects", "name", "number", "results")

    def __init__(
        self,
        name: str,
        call: HostCall,
        batched: Callable[[int, Sequence[bool]], HostFunction] | None,
        has_effects: bool,
        results: ResultTypes | None = None,
    ) -> None:
        self.name = name
        self.has_effects = has_effects
        self.call = call
        self.batched = batched
        self.results = results
        self.number = next(_numbers)

    def __str__(self) -> str:
        return f"{self.name}#{self.number}" if self.results is None else self.name


def define_routine(name: str, call: HostCall, results: ResultTypes) -> None:
    """Makes `name` that of a function without effects, for any batch in front of the axes that it needs.

    `results` raises ShapeError or DtypeError for operands that the function does not take.
    """
    _routines[name] = HostFunction(name, call, None, has_effects=False, results=results)


def routine_named(name: str) -> HostFunction | None:
    """The routine of this name, or None."""
    return _routines.get(name)
