"""The numbers that index expressions stand for."""
from __future__ import annotations

from collections.abc import Mapping

from lavax.passes.kernels.index import Clamped, Index, Quotient, Remainder, Variable


def evaluate(index: Index, values: Mapping[str, int]) -> int:
    """The number that an Index without lookups stands for."""
    total = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Variable(name=name):
                part = values[name]
            case Quotient(dividend=dividend, divisor=divisor):
                part = evaluate(dividend, values) // divisor
            case Remainder(dividend=dividend, divisor=divisor):
                part = evaluate(dividend, values) % divisor
            case Clamped(index=inner, low=low, high=high):
                part = min(max(evaluate(inner, values), low), high)
            case _:
                raise TypeError(f"this atom has no number: {atom!r}")
        total += coefficient * part
    return total
