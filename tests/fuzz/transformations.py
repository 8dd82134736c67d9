"""Transformations of whole programs: derivatives and batches, one after another."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lavax.ir import Graph, Node, TensorType, float32
from lavax.ir.graph import graph_of
from lavax.ir.ops.named_axes import REDUCTIONS
from lavax.passes.batch import batch
from lavax.passes.build.builder import add, build, cast, multiply, splat, sum_over
from lavax.passes.differentiate import differentiate, jvp
from lavax.passes.simplify import simplify
from tests.fuzz.noise import IllConditionedError
from tests.fuzz.regions import has_loop

Made = tuple[Graph, list[np.ndarray]]
Transformation = Callable[[np.random.Generator, Graph, Sequence[np.ndarray]], Made]

AXIS = "i"
AXIS_OPERATIONS = (*REDUCTIONS, "axis_index", "axis_gather")
_MOST_ELEMENTS = 1 << 15


def _floats(graph: Graph) -> list[int]:
    return [position for position, node in enumerate(graph.inputs) if node.dtype.is_float]


def _some(random: np.random.Generator, positions: Sequence[int]) -> list[int]:
    chosen = [position for position in positions if random.random() < 0.7]
    return chosen or [positions[int(random.integers(0, len(positions)))]]


def _loss(graph: Graph) -> Graph:
    """c · Σ (y² + y) over the float results, with another c for each."""
    total = splat(0.0, TensorType((), float32))
    for number, y in enumerate(graph.outputs):
        if y.dtype.is_float:
            term = sum_over(add(multiply(y, y), y), range(y.type.rank))
            total = add(total, multiply(cast(term, float32), splat(1.0 - number / 4, total.type)))
    return graph_of(graph.inputs, [total])


def _grad(random: np.random.Generator, graph: Graph, arrays: Sequence[np.ndarray]) -> Made:
    loss = _loss(graph)
    by = _some(random, _floats(graph))
    made = differentiate(loss, by)
    outputs = made.outputs if random.random() < 0.5 else made.outputs[1:]
    return graph_of(made.inputs, outputs), list(arrays)


def _jvp(random: np.random.Generator, graph: Graph, arrays: Sequence[np.ndarray]) -> Made:
    by = _some(random, _floats(graph))
    tangents = [graph.inputs[position].type for position in by]
    directions = [type.dtype.rounded(np.asarray(random.normal(size=type.shape))) for type in tangents]
    return jvp(graph, by), [*arrays, *directions]


def _stacked(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """The array moved along from one element of the batch to the next."""
    return np.stack([np.roll(array, number) for number in range(size)], axis)


def _batched(random: np.random.Generator, graph: Graph, arrays: Sequence[np.ndarray], name: str | None) -> Made:
    size = int(random.choice([1, 2, 3, 5]))
    axes: list[int | None] = [
        int(random.integers(0, node.type.rank + 1)) if random.random() < 0.7 else None for node in graph.inputs
    ]
    if axes and all(axis is None for axis in axes):
        axes[0] = 0
    outs = [int(random.integers(0, node.type.rank + 1)) for node in graph.outputs]
    given = [
        array if axis is None else _stacked(array, axis, size)
        for array, axis in zip(arrays, axes, strict=True)
    ]
    return batch(graph, axes, outs, size, name), given


def _vmap(random: np.random.Generator, graph: Graph, arrays: Sequence[np.ndarray]) -> Made:
    return _batched(random, graph, arrays, None)


def _over_axis(op: str, node: Node, size: int) -> Node:
    if op == "axis_index":
        return build(op, name=AXIS)
    if op == "axis_gather":
        return build(op, node, name=AXIS, size=size)
    return build(op, node, name=AXIS)


def _named_axis(random: np.random.Generator, graph: Graph, arrays: Sequence[np.ndarray]) -> Made:
    """Operations over the batch's axis, on what the program gives; a gather needs the size that it will have."""
    state = random.bit_generator.state
    size = int(random.choice([1, 2, 3, 5]))  # as `_batched` will draw it
    random.bit_generator.state = state
    outputs: list[Node] = []
    for number, node in enumerate(graph.outputs):
        op = AXIS_OPERATIONS[(node.type.size + number + len(graph.nodes)) % len(AXIS_OPERATIONS)]
        outputs += [node, _over_axis(op, node, size)] if node.dtype.kind != "bool" else [node]
    return _batched(random, graph_of(graph.inputs, outputs), arrays, AXIS)


def _simplify(random: np.random.Generator, graph: Graph, arrays: Sequence[np.ndarray]) -> Made:
    """As between any two transformations of a traced function."""
    return simplify(graph), list(arrays)


TRANSFORMATIONS: dict[str, Transformation] = {
    "grad": _grad,
    "jvp": _jvp,
    "vmap": _vmap,
    "named axis": _named_axis,
    "simplify": _simplify,
}
_OF_FLOATS, _REVERSE = frozenset(("grad", "jvp")), frozenset(("grad",))


def choose(random: np.random.Generator, graph: Graph) -> str:
    """The name of one that is defined for the graph. Raises IllConditionedError if the graph is too large for more."""
    names = list(TRANSFORMATIONS)
    if not _floats(graph) or not any(node.dtype.is_float for node in graph.outputs):
        names = [name for name in names if name not in _OF_FLOATS]
    if has_loop(graph):
        names = [name for name in names if name not in _REVERSE]
    if sum(node.type.size for node in (*graph.inputs, *graph.outputs)) > _MOST_ELEMENTS or len(graph.nodes) > 2000:
        raise IllConditionedError("large enough")
    return names[int(random.integers(0, len(names)))]
