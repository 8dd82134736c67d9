"""Checks: conditions that values must meet, of which the first that fails is an error.

A check is an effect on the host whose first value is a truth value and whose further ones are those that its message
shows. So a program has the truth of each check as a result, and whoever called it raises the error, or keeps it
(lavax/experimental/checkify.py). In a loop, and over elements, only the first failure is kept.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lavax.base.errors import CheckError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import TensorType, int32
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class Check:
    """A check: `category` is "user", or the kind of those that are made for every operation.

    `message` takes the numbers of the values that it shows.
    """

    category: str
    message: Callable[[Sequence[np.ndarray]], str]

    def __call__(self, arrays: Sequence[np.ndarray]) -> None:
        """Raises CheckError if the truth value, the first of the arrays, is False."""
        if not arrays[0]:
            raise CheckError(self.message(arrays[1:]))


def first_failure(values: Sequence[Value], step: int) -> list[Value]:
    """The values of the first element that fails, of those along the first axis; of the last one if none does."""
    holds = values[0]
    (count,) = holds.shape
    last = count - 1
    place = bind("iota", type=TensorType((count,), int32), axis=0)
    if step < 0:
        place = bind("subtract", constant(last, place.type), place)
    found = bind("min", bind("where", holds, constant(last, place.type), place), axes=(0,))
    if step < 0:
        found = bind("subtract", constant(last, found.type), found)
    return [bind("gather", value, found, axes=(0,)) for value in values]


def earlier_failure(earlier: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """The earlier values if they fail, else these."""
    return [_where(earlier[0], new, old) for old, new in zip(earlier, values, strict=True)]


def only_if(chosen: Value, values: Sequence[Value]) -> list[Value]:
    """The values of a check that fails only if `chosen` is true."""
    return [bind("or", bind("not", chosen), values[0]), *values[1:]]


def _where(condition: Value, x: Value, y: Value) -> Value:
    spread = bind("broadcast", condition, type=x.type.with_dtype(condition.type.dtype), axes=())
    return bind("where", spread, x, y)
