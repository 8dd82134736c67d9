"""A function to be differentiated or batched, traced for the arguments of one call."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.passes.simplify import remove_stop_gradient, simplify
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import TreeDef, flatten, unflatten
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracing import Traced, trace_function
from lavax.tracer.transforms.arguments import Arguments, Auxiliary, Concerned, arguments_of, auxiliary_parts
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class TransformedCall:
    """A traced call of a transformed function.

    The graph's inputs are the numbers among the arguments, then the captured values; its outputs are the leaves of the
    function's value, then those of its auxiliary result.
    """

    arguments: Arguments
    traced: Traced
    structure: TreeDef  # of the value
    auxiliary: Auxiliary

    @property
    def graph(self) -> Graph:
        return self.traced.graph

    @property
    def results(self) -> tuple[Node, ...]:
        """The leaves of the value."""
        return self.traced.graph.outputs[: self.structure.leaf_count]

    @property
    def weak_floats(self) -> list[bool]:
        """For each float leaf of the value: whether it is weak, as its tangent is."""
        return [weak for node, weak in zip(self.results, self.traced.weak, strict=False) if node.dtype.is_inexact]

    @property
    def values(self) -> list[Value]:
        """The values of the graph's inputs."""
        return [*self.arguments.values, *self.traced.captured]

    @property
    def float_inputs(self) -> list[int]:
        """The arguments' numbers that are floats."""
        return floats(self.arguments)

    def parts(self, outputs: Sequence[Value]) -> tuple[Any, Any]:
        """The value and the auxiliary result, from the graph's outputs."""
        count, total = self.structure.leaf_count, len(self.traced.graph.outputs)
        return unflatten(self.structure, outputs[:count]), self.auxiliary.rebuilt(outputs[count:total])


def floats(arguments: Arguments) -> list[int]:
    """The numbers of the float inputs among the arguments."""
    return [number for number, value in enumerate(arguments.values) if value.type.dtype.is_inexact]


def transformed_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    transformation: str,
    has_aux: bool = False,
    by: Callable[[Arguments], Iterable[int]] = lambda arguments: (),
    concerned: Concerned | None = None,
) -> TransformedCall:
    """Traces `function` for these arguments; it may ask for numbers that are known.

    `by` selects the numbers among the arguments by which a derivative is taken; `concerned`, as in arguments_of, which
    Python integers are traced.

    Raises DtypeError if a leaf of the result cannot be a value, TypeError if `function` is not a function, or with
    `has_aux` if its result is not a pair.
    """
    signature = signature_of(function, transformation)
    arguments = arguments_of(signature, args, kwargs, concerned)
    rest = Auxiliary()
    structures: list[TreeDef] = []

    def run(tracers: list[Value]) -> list[Any]:
        positional, keywords = arguments.with_values(tracers)
        result = function(*positional, **keywords)
        value, auxiliary = auxiliary_parts(result, signature, transformation) if has_aux else (result, None)
        leaves, structure = flatten(value)
        structures.append(structure)
        return [*leaves, *rest.hold(auxiliary)]

    inputs = arguments.as_inputs(dict.fromkeys(by(arguments), True))
    traced = trace_function(run, inputs, f"{transformation} of {signature.function}")
    return TransformedCall(arguments, traced, structures[0], rest)


def finished(graph: Graph) -> Graph:
    """A transformed graph, simplified: without stop_gradient if it runs now, with it if a trace is active."""
    return remove_stop_gradient(graph) if active_trace() is None else simplify(graph)


def run_finished(graph: Graph, values: Sequence[Value], weak: Sequence[bool]) -> list[Value]:
    """The outputs of a transformed graph for `values`."""
    return apply_graph(finished(graph), values, weak)
