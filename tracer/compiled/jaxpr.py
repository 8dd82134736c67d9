"""A traced function as an object that prints."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, shape_of
from lavax.tracer.tracing.convert import value_like
from lavax.tracer.tracing.tracing import Traced, without_effects
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class Jaxpr:
    """A traced function, as `make_jaxpr` returns it: printing it shows lavax's graph, the stage "ir" of dumps."""

    graph: Graph
    consts: tuple[Any, ...]  # the arrays that the function closes over, which are the last inputs of the graph

    @property
    def jaxpr(self) -> Jaxpr:
        """Itself: there is one form, whose constants are inputs."""
        return self

    @property
    def eqns(self) -> tuple[Node, ...]:
        """The operations in order, each with `op`, `operands`, `attrs` and `type`."""
        return self.graph.nodes

    @property
    def in_avals(self) -> list[ShapeDtype]:
        """The shapes and dtypes of the arguments' leaves."""
        inputs = self.graph.inputs
        return [shape_of(node) for node in inputs[: len(inputs) - len(self.consts)]]

    @property
    def out_avals(self) -> list[ShapeDtype]:
        """The shapes and dtypes of the result's leaves."""
        return [shape_of(node) for node in self.graph.outputs]

    def __str__(self) -> str:
        return str(self.graph)

    __repr__ = __str__


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Value]:
    """The leaves of the result for these leaves of the arguments, and for `consts`, which are `jaxpr.consts` or others.

    Raises TypeError for another number of them, ShapeError or DtypeError for other shapes and dtypes.
    """
    inputs, given = jaxpr.graph.inputs, (*args, *consts)
    if len(inputs) != len(given):
        raise TypeError(f"eval_jaxpr: {len(given)} arguments and constants, where {len(inputs)} are due")
    values = [
        value_like(x, node.type, f"eval_jaxpr: {node.name}: {node.type}") for x, node in zip(given, inputs, strict=True)
    ]
    return apply_graph(jaxpr.graph, values, [False] * len(jaxpr.graph.outputs))


def jaxpr_as_fun(closed_jaxpr: Jaxpr) -> Callable[..., list[Value]]:
    """A function of the leaves of the arguments that returns the leaves of the result, as `eval_jaxpr`."""
    return partial(eval_jaxpr, closed_jaxpr, closed_jaxpr.consts)


def jaxpr_of(traced: Traced) -> Jaxpr:
    """What was traced, without its prints and other effects."""
    pure = without_effects(traced)
    return Jaxpr(pure.graph, pure.captured)
