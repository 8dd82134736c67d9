"""Which maps are merged into one dispatch, and what code they share."""
from __future__ import annotations

import pytest

from lavax.ir import TensorType, float32
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build import builder
from lavax.passes.schedule.merge import MERGED_MAPS, flattened_map, merge_key
from tests.passes.lowering import program_of

# the graph, and how many parts each dispatch has
PARTS: dict[str, tuple[str, list[int]]] = {
    "any shapes": (
        """
        graph (x: f32[7], y: f32[2,3], z: f32[]) {
          %0 = exp(x) : f32[7]
          %1 = exp(y) : f32[2,3]
          %2 = exp(z) : f32[]
          return %0, %1, %2
        }
        """,
        [3],
    ),
    "a number for all elements": (
        """
        graph (x: f32[7], y: f32[2,3], s: f32[]) {
          %0 = broadcast(s) axes=[] : f32[7]
          %1 = multiply(x, %0) : f32[7]
          %2 = broadcast(s) axes=[] : f32[2,3]
          %3 = multiply(y, %2) : f32[2,3]
          return %1, %3
        }
        """,
        [2],
    ),
    "other operations": (
        """
        graph (x: f32[7], y: f32[5]) {
          %0 = exp(x) : f32[7]
          %1 = negate(y) : f32[5]
          return %0, %1
        }
        """,
        [1, 1],
    ),
    "other constants": (
        """
        graph (x: f32[7], y: f32[5]) {
          %0 = constant() value=2.0 : f32[7]
          %1 = multiply(x, %0) : f32[7]
          %2 = constant() value=3.0 : f32[5]
          %3 = multiply(y, %2) : f32[5]
          return %1, %3
        }
        """,
        [1, 1],
    ),
    "other dtypes": (
        """
        graph (x: f32[7], y: i32[5]) {
          %0 = negate(x) : f32[7]
          %1 = negate(y) : i32[5]
          return %0, %1
        }
        """,
        [1, 1],
    ),
    "movement": (
        """
        graph (x: f32[7], y: f32[5]) {
          %0 = flip(x) axes=[0] : f32[7]
          %1 = flip(y) axes=[0] : f32[5]
          return %0, %1
        }
        """,
        [1, 1],
    ),
    "one after the other": (
        """
        graph (x: f32[4,4], y: f32[5]) {
          %0 = exp(y) : f32[5]
          %1 = sum(%0) axes=[0] : f32[]
          %2 = broadcast(%1) axes=[] : f32[4,4]
          %3 = dot(%2, x) contract=[1]x[0] : f32[4,4]
          return %3
        }
        """,
        [1, 1],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    graph, parts = PARTS[name]
    assert [len(step.kernels) for step in program_of(graph).steps] == parts


def _map(*shape: int) -> str:
    extents = ",".join(map(str, shape))
    return f"graph (x: f32[{extents}]) {{\n  %0 = exp(x) : f32[{extents}]\n  return %0\n}}"


def test_large_maps_stay_alone() -> None:
    (small,), (large,) = program_of(_map(2048, 2048)).steps, program_of(_map(2048, 2049)).steps
    assert merge_key(small.kernel) == "f32;exp(a0)['nonpositive=false', 'narrow=false']f32;%0"
    assert small.kernel.domain.rows == MERGED_MAPS.most_elements
    assert merge_key(large.kernel) is None


def test_rows_and_contractions_are_not_merged() -> None:
    (step,) = program_of("""
        graph (x: f32[3,4]) {
          %0 = sum(x) axes=[1] : f32[3]
          return %0
        }
    """).steps
    assert merge_key(step.kernel) is None


def test_parts_of_one_form_have_one_flat_kernel() -> None:
    (step,) = program_of(PARTS["a number for all elements"][0]).steps
    texts = {str(flattened_map(kernel).graph) for kernel in step.kernels}
    assert texts == {
        "graph (a0: f32[], a1: f32[4194304]) {\n"
        "  %0 = broadcast(a0) axes=[] : f32[4194304]\n"
        "  %1 = multiply(a1, %0) : f32[4194304]\n"
        "  return %1\n"
        "}"
    }


def test_a_hundred_updates_are_one_dispatch() -> None:
    inputs, outputs = [], []
    rate = input_node("rate", TensorType((), float32))
    for number in range(100):
        type = TensorType((number + 1, 3), float32)
        inputs += [input_node(f"p{number}", type), input_node(f"g{number}", type)]
        step = builder.multiply(inputs[-1], builder.broadcast(rate, type.shape, ()))
        outputs.append(builder.subtract(inputs[-2], step))
    program = program_of(graph_of([rate, *inputs], outputs), donated=range(1, 201))
    assert [len(step.kernels) for step in program.steps] == [100]
    assert len(program.donors) == 100
