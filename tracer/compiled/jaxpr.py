"""Traced functions as objects that print."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node
from lavax.tracer.compiled.compile import compile
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, shape_of
from lavax.tracer.tracing.tracing import without_effects


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


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function of the same arguments that returns the graph of `fun` as a Jaxpr, which prints as text.

    `static_argnums` are passed to `fun` as they are; with `return_shape` the result is a pair, of the Jaxpr and
    what `eval_shape` returns. The text is that of lavax's graphs: JAX's own notation is another one. Raises ValueError
    for an `axis_env`: use `vmap(axis_name=)`.
    """
    if axis_env is not None:
        raise ValueError("make_jaxpr: there is no axis_env; name an axis by vmap(axis_name=...)")
    compiled = compile(fun, static_argnums=static_argnums)

    @functools.wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        traced = without_effects(compiled.lower(*args, **kwargs).traced)
        jaxpr = Jaxpr(traced.graph, traced.captured)
        outputs = [shape_of(node) for node in traced.graph.outputs]
        return (jaxpr, unflatten(traced.structure, outputs)) if return_shape else jaxpr

    return made
