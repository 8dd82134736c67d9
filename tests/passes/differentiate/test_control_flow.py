"""Gradients through branches and loops, against the same computation unrolled."""

from __future__ import annotations

import numpy as np
import pytest

from lavax.base.errors import ReverseModeError
from lavax.ir import Graph, interpret, parse, verify
from lavax.ir.graph import graph_of
from lavax.passes.build.builder import sum_over
from lavax.passes.differentiate import differentiate
from lavax.passes.simplify import simplify

SCAN = """graph (h: f32[3], xs: f32[4,3], w: f32[3]) {
  %0 = scan(h, xs, w) carries=1 sequences=1 length=4 reverse=REVERSE body=graph (h: f32[3], x: f32[3], w: f32[3]) {
    %0 = multiply(h, w) : f32[3]
    %1 = sin(%0) : f32[3]
    %2 = add(%1, x) : f32[3]
    %3 = multiply(%2, w) : f32[3]
    return %2, %3
  } : (f32[3], f32[4,3])
  %1 = item(%0) index=0 : f32[3]
  %2 = item(%0) index=1 : f32[4,3]
  %3 = multiply(%2, %2) : f32[4,3]
  %4 = sum(%3) axes=[0,1] : f32[]
  %5 = sum(%1) axes=[0] : f32[]
  %6 = multiply(%4, %5) : f32[]
  return %6
}"""

SWITCH = """graph (i: i32[], x: f32[3], y: f32[3]) {
  %0 = switch(i, x, y) branches=[graph (x: f32[3], y: f32[3]) {
    %0 = multiply(x, y) : f32[3]
    return %0
  },graph (x: f32[3], y: f32[3]) {
    %0 = sin(x) : f32[3]
    return %0
  }] : (f32[3])
  %1 = item(%0) index=0 : f32[3]
  %2 = multiply(%1, %1) : f32[3]
  %3 = sum(%2) axes=[0] : f32[]
  return %3
}"""


def central_differences(graph: Graph, arrays: list[np.ndarray], position: int) -> np.ndarray:
    found = np.zeros_like(arrays[position])
    for at in np.ndindex(found.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [array.copy() for array in arrays]
            moved[position][at] += step
            ends.append(interpret(graph, *moved)[0])
        found[at] = (ends[0] - ends[1]) / 2e-6
    return found


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_scan_has_the_gradient_of_its_steps(reverse: str) -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=3), random.normal(size=(4, 3)), random.normal(size=3)]
    graph = parse(SCAN.replace("REVERSE", reverse))
    gradient = simplify(differentiate(graph, (0, 1, 2)))
    verify(gradient)
    _, *found = interpret(gradient, *arrays)
    for position in range(3):
        np.testing.assert_allclose(found[position], central_differences(graph, arrays, position), rtol=1e-6, atol=1e-7)


def test_scan_has_second_derivatives() -> None:
    random = np.random.default_rng(1)
    arrays = [random.normal(size=3), random.normal(size=(4, 3)), random.normal(size=3)]
    first = differentiate(parse(SCAN.replace("REVERSE", "false")), (2,))
    total = graph_of(first.inputs, [sum_over(first.outputs[1], (0,))])
    found = interpret(differentiate(total, (2,)), *arrays)[1]
    np.testing.assert_allclose(found, central_differences(total, arrays, 2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("index", [0, 1])
def test_switch_has_the_gradient_of_the_branch_taken(index: int) -> None:
    random = np.random.default_rng(2)
    x, y = random.normal(size=3), random.normal(size=3)
    _, of_x, of_y = interpret(differentiate(parse(SWITCH), (1, 2)), index, x, y)
    expected = (2 * x * y * y, 2 * x * x * y) if index == 0 else (2 * np.sin(x) * np.cos(x), np.zeros(3))
    np.testing.assert_allclose(of_x, expected[0])
    np.testing.assert_allclose(of_y, expected[1])


def test_while_refuses_reverse_mode() -> None:
    graph = parse("""graph (x: f32[]) {
      %0 = while(x) condition=graph (x: f32[]) {
        %0 = constant() value=3.0 : f32[]
        %1 = less(x, %0) : bool[]
        return %1
      } body=graph (x: f32[]) {
        %0 = add(x, x) : f32[]
        return %0
      } : (f32[])
      %1 = item(%0) index=0 : f32[]
      return %1
    }""")
    assert interpret(graph, 1.0)[0] == 4.0
    with pytest.raises(ReverseModeError, match="fori_loop"):
        differentiate(graph, (0,))
