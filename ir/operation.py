"""The type of operations, and the table of all operations."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np

from lavax.base.quick_dataclasses import dataclass
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
    typed: bool = False  # the result type is given when the node is made
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of attributes that may be omitted, also in text


OPERATIONS: dict[str, Operation] = {}


def define(operation: Operation) -> None:
    """Adds an operation to the table."""
    if operation.name in OPERATIONS:
        raise ValueError(f"operation {operation.name!r} is defined twice")
    OPERATIONS[operation.name] = operation


def names_of_family(family: Family) -> frozenset[str]:
    return frozenset(name for name, operation in OPERATIONS.items() if operation.family == family)
