"""Reductions over stacked values on CPU drivers: the values are joined one by one."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret, parse
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.prepare.stacked_values import MOST_STACKED
from tests.backends.vulkan.run.execution import assert_agrees

CPU, GPU = (target_of(profile, 1 << 34, 1 << 32) for profile in (CPU_DRIVER, GENERIC_GPU))
JOINS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _stack(reduction: str, values: int, dtype: str = "f32", axis: int = 0) -> Graph:
    """A reduction of an array and its multiples, stacked along an axis."""
    shape = [6, 10]
    shape.insert(axis, 1)
    of_part, whole = ",".join(map(str, shape)), [*shape]
    whole[axis] *= values
    lines = [f"%0 = reshape(x) : {dtype}[{of_part}]"]
    lines += [f"%{number} = add(%{number - 1}, %0) : {dtype}[{of_part}]" for number in range(1, values)]
    parts = ", ".join(f"%{number}" for number in range(values))
    lines.append(f"%{values} = concatenate({parts}) axis={axis} : {dtype}[{','.join(map(str, whole))}]")
    lines.append(f"%{values + 1} = {reduction}(%{values}) axes=[{axis}] : {dtype}[6,10]")
    text = "\n".join(lines)
    return parse(f"graph (x: {dtype}[6,10]) {{\n{text}\nreturn %{values + 1}\n}}")


def _ops(graph: Graph, target: object = CPU) -> list[str]:
    return [node.op for node in prepare(graph, target).nodes]  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", JOINS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_values_are_joined_as_the_reduction_does(reduction: str, axis: int) -> None:
    graph = _stack(reduction, 3, axis=axis)
    ops = _ops(graph)
    assert reduction not in ops and "concatenate" not in ops and JOINS[reduction] in ops
    x = np.random.default_rng(0).normal(size=(6, 10)).astype("f")
    (found,), (expected,) = interpret(prepare(graph, CPU), x), interpret(graph, x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert_agrees(graph, [x])


def test_a_stack_of_stacks_is_one() -> None:
    graph = parse("""graph (x: f32[1,5], y: f32[1,5]) {
        %0 = concatenate(x, y) axis=0 : f32[2,5]
        %1 = concatenate(%0, x) axis=0 : f32[3,5]
        %2 = max(%1) axes=[0] : f32[5]
        return %2
    }""")
    assert "max" not in _ops(graph)


@pytest.mark.parametrize(
    "graph",
    [
        _stack("sum", MOST_STACKED + 1),
        _stack("sum", 3, "f16"),
        parse("""graph (x: f32[2,5], y: f32[1,5]) {
            %0 = concatenate(x, y) axis=0 : f32[3,5]
            %1 = sum(%0) axes=[0] : f32[5]
            return %1
        }"""),
        parse("""graph (x: f32[1,5], y: f32[1,5]) {
            %0 = concatenate(x, y) axis=0 : f32[2,5]
            %1 = sum(%0) axes=[1] : f32[2]
            return %1
        }"""),
    ],
    ids=["many", "halves", "longer parts", "along another axis"],
)
def test_others_stay(graph: Graph) -> None:
    assert {"sum", "concatenate"} <= set(_ops(graph))


def test_gpus_reduce_stacks() -> None:
    assert "sum" in _ops(_stack("sum", 3), GPU)
