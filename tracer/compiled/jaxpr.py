"""A traced function as an object that prints."""
from __future__ import annotations

from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, shape_of
from lavax.tracer.tracing.tracing import Traced, without_effects


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


def jaxpr_of(traced: Traced) -> Jaxpr:
    """What was traced, without its prints and other effects."""
    pure = without_effects(traced)
    return Jaxpr(pure.graph, pure.captured)
