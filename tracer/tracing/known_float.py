"""Python floats that a transformation is not about: numbers to Python, inputs to the trace."""
from __future__ import annotations

from typing import Any

from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.values.value import Value


class KnownFloat(float):
    """A Python float among the arguments of a function that is differentiated by others, or mapped over others.

    The function may do with it all that Python does with floats. Operations of lavax read the input of the trace that
    stands for it, so that one program serves all its values; after the trace it is a float like any other.
    """

    __slots__ = ("_input",)

    def __new__(cls, number: float, input: Value) -> KnownFloat:
        made = super().__new__(cls, number)
        made._input = input
        return made

    _input: Value

    @property
    def value(self) -> Value | None:
        """The input, where its trace is alive."""
        held = self._input
        if isinstance(held, Tracer) and (held.trace.ended or not held.trace.encloses(active_trace())):
            return None
        return held

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float(self),)  # a copy is a number alone
