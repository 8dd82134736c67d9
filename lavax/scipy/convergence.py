"""Series and continued fractions that run until every element has converged, and derivatives by their parameters."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import abs, add, multiply
from lavax.numpy.elementwise.comparison import less, logical_and, not_equal, where
from lavax.numpy.reductions.reductions import any as any_of
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.values.value import Value

MAX_STEPS = 2000
MIN_STEPS = 64  # for derivatives by parameters


def summed(first: Value, ratio: Callable[[Value], Value]) -> Value:
    """first (1 + r(1) + r(1) r(2) + …), with r(k) the ratio of neighbouring terms, until nothing changes."""

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[3]), less(state[2], float(MAX_STEPS)))

    def step(state: Any) -> Any:
        total, term, number, _ = state
        term = multiply(term, ratio(number))
        longer = add(total, term)
        return longer, term, add(number, 1.0), not_equal(longer, total)

    one = number_like(first, 1.0)
    total: Value = while_loop(is_open, step, (first, first, one, not_equal(first, 0.0)))[0]
    return total


def number_like(x: Value, number: float) -> Value:
    """One number in the dtype of `x`."""
    found: Value = ones_like(x, shape=()) if number == 1.0 else multiply(ones_like(x, shape=()), number)
    return found


def not_zero(x: Value, tiny: float) -> Value:
    """`x`, or `tiny` where its magnitude is below that."""
    return where(less(abs(x), tiny), tiny, x)


def slope(function: Callable[..., Value], place: int, *arguments: Value) -> Value:
    """The derivative of an elementwise function by one of its arguments, in forward mode."""

    def of_one(x: Value) -> Value:
        return function(*arguments[:place], x, *arguments[place + 1 :], MIN_STEPS)

    found: Value = jvp(of_one, (arguments[place],), (ones_like(arguments[place]),))[1]
    return found
