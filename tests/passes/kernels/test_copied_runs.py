"""What is moved, as runs, gives the elements that the interpreter gives."""
from __future__ import annotations

import random
from textwrap import dedent

import numpy as np
import pytest

from lavax.ir import Graph, Node, TensorType, interpret, parse
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.types import DTYPES
from lavax.passes.kernels.copied_runs import Moved, Run, moved


def _result(graph: Graph, found: Moved, arrays: dict[Node, np.ndarray]) -> np.ndarray:
    (result,) = graph.outputs
    written = np.full(result.type.size, np.nan if found.around is None else found.around, np.float32)
    for array, runs in found.runs.items():
        for run in runs:
            numbers = arrays[array].reshape(-1)[run.source : run.source + run.count]
            written[run.target : run.target + run.count] = numbers
    return written.reshape(result.shape)


def _check(graph: Graph, least: int = 1) -> Moved | None:
    (result,) = graph.outputs
    found = moved(result, least)
    if found is not None:
        arrays = {
            node: 1 + np.arange(node.type.size, dtype=np.float32).reshape(node.shape) + 10_000 * number
            for number, node in enumerate(graph.inputs)
        }
        (expected,) = interpret(graph, *arrays.values())
        np.testing.assert_array_equal(_result(graph, found, arrays), expected)
    return found


def _text(text: str) -> Graph:
    return parse(dedent(text))


def test_a_rotation_is_two_runs() -> None:
    graph = _text("""
        graph (x: f32[100]) {
          %0 = slice(x) start=[90] limit=[100] stride=[1] : f32[10]
          %1 = slice(x) start=[0] limit=[90] stride=[1] : f32[90]
          %2 = concatenate(%0, %1) axis=0 : f32[100]
          return %2
        }
    """)
    found = _check(graph)
    assert found == Moved(None, {graph.inputs[0]: [Run(90, 0, 10), Run(0, 10, 90)]})


def test_whole_lines_are_one_run_and_parts_of_lines_a_run_each() -> None:
    graph = _text("""
        graph (x: f32[9,10]) {
          %0 = slice(x) start=[2,0] limit=[8,10] stride=[1,1] : f32[6,10]
          %1 = slice(%0) start=[0,3] limit=[6,8] stride=[2,1] : f32[3,5]
          %2 = reshape(%0) : f32[60]
          %3 = reshape(%1) : f32[15]
          %4 = concatenate(%2, %3) axis=0 : f32[75]
          return %4
        }
    """)
    assert _check(graph) is None, "a part of a part in another shape has no strides"
    (flat, part) = (node.operands[0] for node in graph.outputs[0].operands)
    array = graph.inputs[0]
    assert _check(graph_of(graph.inputs, (flat,))) == Moved(None, {array: [Run(20, 0, 60)]})
    runs = [Run(23, 0, 5), Run(43, 5, 5), Run(63, 10, 5)]
    assert _check(graph_of(graph.inputs, (part,))) == Moved(None, {array: runs})
    assert _check(graph_of(graph.inputs, (part,)), least=6) is None


def test_repeated_lines() -> None:
    graph = _text("""
        graph (x: f32[20]) {
          %0 = broadcast(x) axes=[1] : f32[3,20]
          %1 = reshape(%0) : f32[60]
          return %1
        }
    """)
    found = _check(graph, least=20)
    assert found == Moved(None, {graph.inputs[0]: [Run(0, 0, 20), Run(0, 20, 20), Run(0, 40, 20)]})


def test_what_is_around_is_a_number() -> None:
    graph = _text("""
        graph (x: f32[4,6]) {
          %0 = pad(x) low=[1,2] high=[0,3] interior=[0,0] value=7.0 : f32[5,11]
          return %0
        }
    """)
    found = _check(graph)
    assert found is not None and found.around == 7.0
    assert found.runs[graph.inputs[0]][0] == Run(0, 13, 6)


@pytest.mark.parametrize(
    "line",
    [
        "%0 = negate(x) : f32[4,6]",
        "%0 = flip(x) axes=[1] : f32[4,6]",
        "%0 = pad(x) low=[0,0] high=[0,0] interior=[1,0] value=0.0 : f32[7,6]",
    ],
)
def test_what_does_more_is_none(line: str) -> None:
    assert _check(_text(f"graph (x: f32[4,6]) {{\n{line}\nreturn %0\n}}")) is None


def test_numbers_of_runs_have_an_end() -> None:
    x = input_node("x", _floats(5000, 4))
    cut = _made("slice", x, start=(0, 0), limit=(5000, 3), stride=(1, 1))
    assert moved(cut, 1) is None
    assert moved(_made("slice", x, start=(0, 0), limit=(4000, 3), stride=(1, 1)), 1) is not None


def _floats(*shape: int) -> TensorType:
    return TensorType(shape, DTYPES["f32"])


def _made(op: str, *operands: Node, **attrs: object) -> Node:
    return make_node(op, operands, attrs)


def _step(chance: random.Random, node: Node) -> Node:
    shape = node.shape
    rank = len(shape)
    match chance.choice(["slice", "transpose", "broadcast", "reshape", "concatenate", "pad"]):
        case "slice":
            start = tuple(chance.randrange(extent) for extent in shape)
            limit = tuple(chance.randint(first + 1, extent) for first, extent in zip(start, shape, strict=True))
            stride = tuple(chance.choice([1, 1, 2]) for _ in shape)
            return _made("slice", node, start=start, limit=limit, stride=stride)
        case "transpose":
            return _made("transpose", node, axes=tuple(chance.sample(range(rank), rank)))
        case "broadcast" if rank < 4:
            at = chance.randrange(rank + 1)
            wide = (*shape[:at], chance.choice([1, 2, 3]), *shape[at:])
            axes = tuple(axis for axis in range(rank + 1) if axis != at)
            return make_node("broadcast", (node,), {"axes": axes}, node.type.with_shape(wide))
        case "reshape":
            size = node.type.size
            first = chance.choice([number for number in range(1, size + 1) if size % number == 0])
            return make_node("reshape", (node,), {}, node.type.with_shape((first, size // first)))
        case "concatenate" if rank:
            axis = chance.randrange(rank)
            return _made("concatenate", node, node, axis=axis)
    return node


@pytest.mark.parametrize("seed", range(300))
def test_movements_at_random(seed: int) -> None:
    chance = random.Random(seed)
    inputs = [input_node(name, _floats(6, 4, 5)) for name in "xy"]
    node = _made("concatenate", *inputs, axis=chance.randrange(3)) if chance.random() < 0.5 else inputs[0]
    for _ in range(chance.randint(1, 5)):
        if node.type.size < 2000:
            node = _step(chance, node)
    _check(graph_of(inputs, (node,)))


def test_most_movements_at_random_are_runs() -> None:
    """So that the test above shows something."""
    found = 0
    for seed in range(100):
        chance = random.Random(seed)
        node = _step(chance, _step(chance, input_node("x", _floats(6, 4, 5))))
        found += moved(node, 1) is not None
    assert found > 70
