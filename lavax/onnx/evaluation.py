"""Runs a graph while it is traced: on NumPy where all numbers are known, else on lavax."""
from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.errors import LavaxError, ONNXError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import named_scope
from lavax.onnx.library import Library
from lavax.onnx.needs import Needs
from lavax.onnx.operators.operator import MOST_KNOWN, Call, Operator, on_device
from lavax.onnx.reading.graph import Graph, Node

Values = Mapping[str, Any]
Dtypes = Mapping[str, np.dtype]


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Runs graphs with a model's operators and functions."""

    library: Library
    needs: Needs

    def run(self, graph: Graph, given: Values, around: Values) -> list[Any]:
        """The outputs of a graph. `given` are its inputs and parameters, `around` the names of graphs around it."""
        values = {**around, **graph.initializers, **given}
        declared = {own.name: own.dtype for own in graph.inputs if own.dtype is not None}
        needed = self.needs.of(graph)
        for node in graph.nodes:
            inputs = [values[name] if name else None for name in node.inputs]
            is_needed = not needed.isdisjoint(node.outputs)
            results = self._node(node, inputs, values, declared, is_needed)
            values.update((name, value) for name, value in zip(node.outputs, results, strict=False) if name)
        return [values[name] for name in graph.output_names]

    def _node(
        self, node: Node, inputs: list[Any], values: Values, declared: Dtypes, is_needed: bool
    ) -> list[Any]:  # fmt: skip
        entry = self.library.entry(node)
        try:
            if entry is None:
                body = self.library.body(node)
                assert body is not None, "refused while loading"
                names = [own.name for own in body.inputs]
                padded = [*inputs, *[None] * (len(names) - len(inputs))]
                return self.run(body, dict(zip(names, padded, strict=True)), {})
            return self._operator(entry, node, inputs, values, declared, is_needed)
        except ONNXError:
            raise
        except (LavaxError, ArithmeticError, IndexError, MemoryError, TypeError, ValueError) as error:
            raise ONNXError(f"{node}: {type(error).__name__}: {error}") from error

    def _operator(
        self, entry: Operator, node: Node, inputs: list[Any], values: Values, declared: Dtypes, is_needed: bool
    ) -> list[Any]:
        is_known = entry.folds and all(map(_is_known, inputs))
        if is_known and _reach(inputs) > MOST_KNOWN:  # a file of a few bytes can ask for any size
            if is_needed:
                raise ONNXError(f"{node}: more than {MOST_KNOWN} numbers would have to be known before the model runs")
            is_known = False
        if not is_known:
            kept = range(len(inputs)) if entry.keeps is None else entry.keeps
            static = set(entry.known_inputs(node))
            inputs = [
                value if place in kept or node.inputs[place] in static else on_device(value)
                for place, value in enumerate(inputs)
            ]

        def branch(graph: Graph, *arguments: Any) -> list[Any]:
            names = [given.name for given in graph.inputs]
            return self.run(graph, dict(zip(names, arguments, strict=False)), values)

        call = Call(node, entry.attributes_of(node), np if is_known else lnp, branch, self.needs.of, declared)
        if is_known:
            with np.errstate(all="ignore"):
                made = entry.evaluate(call, *inputs)
        else:
            with named_scope(node.name.strip("/")):  # stages and profiles show it
                made = entry.evaluate(call, *inputs)
        results = list(made) if isinstance(made, tuple) else [made]
        return [np.asarray(value) if isinstance(value, np.generic) else value for value in results]


def _reach(inputs: list[Any]) -> int:
    """The elements that an operator may make of known inputs: their sum, or those of the shape that they share."""
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    total = sum(value.size for value in arrays)
    try:
        return max(total, prod(np.broadcast_shapes(*(value.shape for value in arrays))))
    except ValueError:
        return total


def _is_known(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_known, value))
    return value is None or isinstance(value, np.ndarray)
