"""What an operation is, and the table of all of them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from lavax.ir.types import TensorType

Attributes = Mapping[str, Any]
TypeRule = Callable[[Sequence[TensorType], Attributes, "TensorType | None"], TensorType]
# evaluate(arrays, attributes, result type, NumPy dtype of the result)
Evaluation = Callable[[Sequence[np.ndarray], Attributes, TensorType, np.dtype], np.ndarray]
Family = Literal[
    "source", "elementwise", "reduction", "movement", "indexing", "contraction", "routine", "region", "axis", "lowered"
]


@dataclass(frozen=True)
class Operation:
    """An operation: its name, family, attributes in printing order, type rule and NumPy evaluation."""

    name: str
    family: Family
    infer: TypeRule
    evaluate: Evaluation
    attributes: tuple[str, ...] = ()
    typed: bool = False  # the result type is chosen by whoever makes the node
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of attributes that may be left out, in text too


OPERATIONS: dict[str, Operation] = {}


def define(operation: Operation) -> None:
    """Enters an operation into the table."""
    if operation.name in OPERATIONS:
        raise ValueError(f"operation {operation.name!r} is defined twice")
    OPERATIONS[operation.name] = operation


def names_of_family(family: Family) -> frozenset[str]:
    return frozenset(name for name, operation in OPERATIONS.items() if operation.family == family)
