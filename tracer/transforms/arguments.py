"""The arguments of a transformed function, and its auxiliary result."""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.calls.call import CallStructure, call_of
from lavax.tracer.calls.signature import Signature
from lavax.tracer.pytrees.pytree import TreeDef, flatten, unflatten
from lavax.tracer.tracing.convert import argument, is_numeric, lift
from lavax.tracer.tracing.effects import Effect, emit_again, take_effects
from lavax.tracer.tracing.known_float import KnownFloat
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracing import Input
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class Arguments:
    """A call's arguments, with the numbers among them as values; other leaves are unchanged."""

    signature: Signature
    call: CallStructure
    leaves: list[Any]
    inputs: list[int]  # which leaves are numeric
    known: Mapping[int, float]  # Python floats among these leaves that the transformation is not about

    @property
    def values(self) -> list[Value]:
        return [self.leaves[position] for position in self.inputs]

    def as_inputs(self, differentiated: Mapping[int, bool] = MappingProxyType({})) -> list[Input]:
        """Inputs for a trace that may ask for the numbers behind them.

        `differentiated` maps the numbers of some inputs to whether a derivative is taken by them.
        """
        names = self.call.names(self.signature)
        return [
            Input(names[position], self.leaves[position].abstract, self.leaves[position], differentiated.get(number))
            for number, position in enumerate(self.inputs)
        ]

    def with_values(self, values: Sequence[Value]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with `values` in place of the numbers; floats that are known stay floats."""
        leaves = list(self.leaves)
        for position, value in zip(self.inputs, values, strict=True):
            number = self.known.get(position)
            leaves[position] = value if number is None else KnownFloat(number, value)
        return self.call.arguments(leaves)


# The leaves of a call that a transformation is about: those that it differentiates by, or maps.
Concerned = Callable[[CallStructure], Collection[int]]


def arguments_of(
    signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any], concerned: Concerned | None = None
) -> Arguments:
    """The arguments of a call of a function that is transformed.

    Python's numbers that the transformation is not about stay what they are: they may be settings, such as the length
    of a loop. Floats are inputs all the same, so that a program serves all their values: see KnownFloat. `concerned`
    None: it is about all.
    """
    call, leaves = call_of(args, kwargs)
    convert: Callable[[Any], Value] = argument if active_trace() is None else lift
    asked = range(len(leaves)) if concerned is None else frozenset(concerned(call))
    inputs = [
        position
        for position, leaf in enumerate(leaves)
        if is_numeric(leaf) and (position in asked or not isinstance(leaf, int))
    ]
    known = {p: float(leaves[p]) for p in inputs if p not in asked and type(leaves[p]) in (float, KnownFloat)}
    for position in inputs:
        leaf = leaves[position]
        leaves[position] = leaf if isinstance(leaf, Value) else convert(leaf)
    return Arguments(signature, call, leaves, inputs, known)


@dataclass
class Auxiliary:
    """The auxiliary result of a transformed function; leaves that are not values are unchanged."""

    structure: TreeDef | None = None
    leaves: list[Any] = field(default_factory=list)
    traced: list[int] = field(default_factory=list)  # which of the leaves are outputs of the graph
    effects: tuple[Effect, ...] = ()  # effects of the function on the host

    def hold(self, auxiliary: Any) -> list[Value]:
        """Keeps the auxiliary result and the effects of the trace; returns the values of both."""
        leaves, self.structure = flatten(auxiliary)
        self.leaves = [float(leaf) if isinstance(leaf, KnownFloat) else leaf for leaf in leaves]
        self.traced = [position for position, leaf in enumerate(self.leaves) if isinstance(leaf, Value)]
        self.effects, shown = take_effects()
        return [*(self.leaves[position] for position in self.traced), *shown]

    def rebuilt(self, values: Sequence[Value]) -> Any:
        """The auxiliary result with `values` as its values; the effects go to the enclosing trace, or are performed."""
        assert self.structure is not None
        count = len(self.traced)
        for position, value in zip(self.traced, values[:count], strict=True):
            self.leaves[position] = value
        emit_again(self.effects, values[count:])
        self.effects = ()
        return unflatten(self.structure, self.leaves)


def auxiliary_parts(result: Any, signature: Signature, transformation: str) -> tuple[Any, Any]:
    """The value and the auxiliary result of a function with has_aux. Raises TypeError if it returned no such pair."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{transformation} of {signature.function} with has_aux=True: the function must give (value, aux), "
            f"got a {type(result).__name__}"
        )
    return result
