"""The reference interpreter: runs a graph in NumPy. It shares no code with the device path; tests compare with it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.graph import Graph, Node, require_graph
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import DType, TupleType

_LEAST_PART = 4  # bytes of a part of NumPy's least complex numbers


def held_as(dtype: DType, floating: np.dtype) -> np.dtype:
    """The NumPy dtype of values of `dtype`, where those of floats, and the parts of complex numbers, are `floating`."""
    if dtype.is_complex:
        return np.dtype(f"c{2 * floating.itemsize}") if floating.itemsize >= _LEAST_PART else dtype.numpy
    return floating if dtype.is_float else dtype.numpy


def evaluate_node(node: Node, operands: list[Any], floating: np.dtype) -> Any:
    """The value of one node, a tuple of arrays if it has several; floating values are held as `floating`."""
    evaluate = OPERATIONS[node.op].evaluate
    with np.errstate(all="ignore"):
        if isinstance(node.type, TupleType):
            return evaluate(operands, node.attrs, node.type, floating)
        return np.asarray(evaluate(operands, node.attrs, node.type, held_as(node.dtype, floating)))


def interpret(graph: Graph, *arrays: Any, dtype: Any = np.float64) -> list[np.ndarray]:
    """Runs `graph` on `arrays`, one per input, with all floating values held as `dtype` (float64 for reference).

    Returns one array per output. Raises ShapeError if an array does not fit its input.
    """
    require_graph("interpret", graph)
    floating = np.dtype(dtype)
    if len(arrays) != len(graph.inputs):
        raise ShapeError(f"interpret: the graph has {len(graph.inputs)} inputs, got {len(arrays)} arrays")
    values: dict[Node, np.ndarray] = {}
    for node, array in zip(graph.inputs, arrays, strict=True):
        value = np.asarray(array).astype(held_as(node.dtype, floating))
        if value.shape != node.shape:
            raise ShapeError(f"interpret: input {node.name} is {node.type}, got an array of shape {value.shape}")
        values[node] = value
    return run_nodes(graph, values, floating)


def run_nodes(graph: Graph, values: Mapping[Node, np.ndarray], floating: np.dtype) -> list[np.ndarray]:
    found = dict(values)
    for node in graph.nodes:
        found[node] = evaluate_node(node, [found[operand] for operand in node.operands], floating)
    return [found[output] for output in graph.outputs]
