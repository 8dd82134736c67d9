"""Extrema of complex updates, which are ordered by real parts, and by imaginary ones where these are equal."""
from __future__ import annotations

from math import inf, nan
from typing import Protocol

from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.complex_parts import imag, real
from lavax.numpy.elementwise.comparison import equal, isnan, where
from lavax.tracer import bind
from lavax.tracer.values.value import Value


class Places(Protocol):
    """Places of arrays of one shape."""

    def read(self, array: Value) -> Value:
        """What stands there."""

    def joined(self, array: Value, values: Value) -> Value:
        """The array with its extrema with `values` there."""


def lexicographic(array: Value, values: ArrayLike, *, greatest: bool, places: Places) -> Value:
    """The real parts are joined first. Then the imaginary parts that belong to the real ones found are; an update with
    NaN in either part makes both NaN, and NaN of the array stays as it is."""
    updates = cast(as_value(values), array.type.dtype)
    found = places.joined(_first(array), _first(updates))
    none = -inf if greatest else inf

    def second(value: Value, there: Value) -> Value:
        return where(equal(real(value), there), imag(value), none)

    beside = places.joined(second(array, found), second(updates, places.read(found)))
    joined = bind("complex", found, where(isnan(found), nan, beside))
    return where(isnan(array), array, joined)


def _first(value: Value) -> Value:
    return where(isnan(value), nan, real(value))
