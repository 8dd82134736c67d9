"""Makes a program that shows a difference as small as can be, while an engine still shows one of the same kind."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lavax.ir import Graph, Node
from lavax.ir import interpreter as interpreter_of_graphs
from lavax.ir.graph import graph_of, input_node, with_operands
from lavax.ir.types import TupleType
from tests.fuzz.compare import difference
from tests.fuzz.engines import INTERPRETERS
from tests.fuzz.noise import RUNS_TO_CONFIRM, IllConditionedError, expected

Program = tuple[Graph, list[np.ndarray]]
IsWrong = Callable[[Graph, Sequence[np.ndarray]], bool]
_MOST_TRIALS = 400


def shows(engine: str, kind: str) -> IsWrong:
    """Whether the engine differs on a program, in this way, where the program's condition lets it be told."""

    def is_wrong(graph: Graph, arrays: Sequence[np.ndarray]) -> bool:
        try:
            wanted = expected(graph, arrays, runs=RUNS_TO_CONFIRM, in_doubles=engine in INTERPRETERS)
        except IllConditionedError:
            return False
        found = difference(engine, graph, arrays, wanted)
        return found is not None and found.kind == kind

    return is_wrong


def _values(graph: Graph, arrays: Sequence[np.ndarray]) -> dict[Node, np.ndarray]:
    """What each value is, rounded to its dtype as an input would be."""
    plain = [node for node in graph.nodes if not isinstance(node.type, TupleType)]
    found = interpreter_of_graphs.interpret(Graph(graph.inputs, graph.nodes, tuple(plain)), *arrays)
    return {
        node: node.dtype.rounded(value) if node.dtype.is_float else value
        for node, value in zip(plain, found, strict=True)
    }


def _trimmed(graph: Graph, arrays: Sequence[np.ndarray]) -> Program:
    """Without inputs that nothing reads."""
    read = {operand for node in graph.nodes for operand in node.operands}.union(graph.outputs)
    kept = [(node, array) for node, array in zip(graph.inputs, arrays, strict=True) if node in read]
    return graph_of([node for node, _ in kept], graph.outputs), [array for _, array in kept]


def _with_fewer_outputs(graph: Graph, arrays: Sequence[np.ndarray]) -> Iterator[Program]:
    if len(graph.outputs) > 1:
        for output in graph.outputs:
            yield _trimmed(graph_of(graph.inputs, [output]), arrays)
        for output in graph.outputs:
            yield _trimmed(graph_of(graph.inputs, [each for each in graph.outputs if each is not output]), arrays)


def _ending_earlier(graph: Graph, arrays: Sequence[np.ndarray]) -> Iterator[Program]:
    """An operand of the last node as the output instead of it."""
    for output in graph.outputs:
        for operand in output.operands:
            if not isinstance(operand.type, TupleType):
                others = [each for each in graph.outputs if each is not output]
                yield _trimmed(graph_of(graph.inputs, [*others, operand]), arrays)


def _beginning_later(graph: Graph, arrays: Sequence[np.ndarray]) -> Iterator[Program]:
    """A value in the middle as an input instead of what computes it: late ones first, since they cut off most."""
    values = _values(graph, arrays)
    for node in reversed(graph.nodes):
        if node in values and node not in graph.outputs:
            name = next(f"y{number}" for number in range(10_000) if f"y{number}" not in {x.name for x in graph.inputs})
            given = input_node(name, node.type)
            yield _trimmed(graph_of((*graph.inputs, given), _replaced(graph, node, given)), [*arrays, values[node]])


def _replaced(graph: Graph, old: Node, new: Node) -> list[Node]:
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        found[node] = new if node is old else with_operands(node, tuple(found[each] for each in node.operands))
    return [found[output] for output in graph.outputs]


def _with_plain_numbers(graph: Graph, arrays: Sequence[np.ndarray]) -> Iterator[Program]:
    """Inputs that are easily read."""
    for position, array in enumerate(arrays):
        counted = np.arange(array.size).reshape(array.shape) % 5
        for plain in (np.zeros_like(array), np.ones_like(array), counted.astype(array.dtype)):
            if not np.array_equal(plain, array):
                yield graph, [*arrays[:position], plain, *arrays[position + 1 :]]
                break


_STEPS = (_with_fewer_outputs, _ending_earlier, _beginning_later)


def shrink(graph: Graph, arrays: Sequence[np.ndarray], is_wrong: IsWrong) -> Program:
    """A smaller program that `is_wrong` still; the program itself if none is found."""
    best: Program = _trimmed(graph, arrays)
    if not is_wrong(*best):
        return graph, list(arrays)
    trials = 0
    improved = True
    while improved and trials < _MOST_TRIALS:
        improved = False
        for step in _STEPS:
            for candidate in step(*best):
                trials += 1
                smaller = len(candidate[0].nodes) < len(best[0].nodes) or (
                    len(candidate[0].outputs) < len(best[0].outputs)
                )
                if smaller and is_wrong(*candidate):
                    best, improved = candidate, True
                    break
            if improved:
                break
    for candidate in _with_plain_numbers(*best):
        if is_wrong(*candidate):
            best = candidate
            break
    return best
