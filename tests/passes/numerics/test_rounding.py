"""What products round their operands to: once for all that read a value, and stored where that is asked for."""
from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.ir import Graph, interpret, parse
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.numerics.rounding import with_rounded_operands
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Products, Target
from tests.passes.lowering import f32
from tests.passes.program_checks import check_program

STORING = Target(Products(stores_rounded=lambda dot, side: True))


def traced(function: Any, *arguments: np.ndarray) -> Graph:
    with lx.matmul_precision("bfloat16", backward="bfloat16"):
        return simplify(lx.trace(function)(*arguments))


def kernels_of(graph: Graph, target: Target = STORING) -> KernelProgram:
    program = schedule(prepare(graph, target), target=target)
    check_program(program)
    return program


def written(program: KernelProgram) -> list[tuple[str, list[str]]]:
    return [(step.kernel.kind, [output.dtype.name for output in step.kernel.graph.outputs]) for step in program.steps]


def test_a_value_is_rounded_once_for_all_products_also_in_another_order() -> None:
    text = """
        graph (x: f32[8,6], w: f32[6,8]) {
          %0 = dot(x, w) contract=[1]x[0] precision="bf16" : f32[8,8]
          %1 = transpose(x) axes=[1,0] : f32[6,8]
          %2 = dot(%1, %0) contract=[1]x[0] precision="bf16" : f32[6,8]
          %3 = dot(%2, w) contract=[1]x[1] precision="f16" : f32[6,6]
          return %3
        }
    """
    expected = """
        graph (x: f32[8,6], w: f32[6,8]) {
          %0 = cast(x) : bf16[8,6]
          %1 = cast(%0) : f32[8,6]
          %2 = transpose(%1) axes=[1,0] : f32[6,8]
          %3 = cast(w) : bf16[6,8]
          %4 = cast(%3) : f32[6,8]
          %5 = dot(%1, %4) contract=[1]x[0] precision="bf16" : f32[8,8]
          %6 = cast(%5) : bf16[8,8]
          %7 = cast(%6) : f32[8,8]
          %8 = dot(%2, %7) contract=[1]x[0] precision="bf16" : f32[6,8]
          %9 = cast(%8) : f16[6,8]
          %10 = cast(%9) : f32[6,8]
          %11 = cast(w) : f16[6,8]
          %12 = cast(%11) : f32[6,8]
          %13 = dot(%10, %12) contract=[1]x[1] precision="f16" : f32[6,6]
          return %13
        }
    """
    assert str(with_rounded_operands(parse(dedent(text)))).strip() == dedent(expected).strip()


def test_what_is_of_the_dtype_is_not_rounded_again() -> None:
    graph = traced(lambda x, w: x.astype(lnp.bfloat16).astype(lnp.float32) @ w, f32(8, 8), f32(8, 8))
    once = with_rounded_operands(graph)
    assert [node.op for node in once.nodes].count("cast") == 4
    assert str(with_rounded_operands(once)) == str(once)


def test_roundings_are_stored_where_that_is_asked_for_and_else_repeated() -> None:
    graph = traced(lambda x, w, v: nn.relu(x @ w) @ v.T, f32(8, 8), f32(8, 8), f32(8, 8))
    stored = kernels_of(graph)
    assert written(stored) == [("map", ["bf16"]), ("contract", ["bf16"]), ("contract", ["f32"])], stored
    assert written(kernels_of(graph, Target())) == [("contract", ["bf16"]), ("contract", ["f32"])]
    assert Reason.ROUNDED in fuse(prepare(graph, STORING), STORING).storing.values()
    left = Target(Products(stores_rounded=lambda dot, side: side == 0))
    assert written(kernels_of(traced(lambda x, w: x @ w, f32(8, 8), f32(8, 8)), left))[0] == ("map", ["bf16"])


def test_windows_are_made_of_what_is_rounded_and_not_the_other_way_round() -> None:
    graph = traced(lambda x, w: nn.conv(x, w, padding="SAME"), f32(2, 3, 6, 6), f32(4, 3, 3, 3))
    maps = [step.kernel for step in kernels_of(graph).steps if step.kernel.kind == "map"]
    shapes = {output.shape for kernel in maps for output in kernel.graph.outputs}
    assert all(np.prod(shape) <= 2 * 3 * 6 * 6 for shape in shapes), shapes


@pytest.mark.parametrize("target", [Target(), STORING])
def test_narrow_values_between_kernels_are_stored_narrow(target: Target) -> None:
    kinds = (lx.ShapeDtype((16, 16), lnp.bfloat16),) * 3
    graph = simplify(lx.trace(lambda x, w, v: nn.relu(x @ w) @ v)(*kinds))
    assert written(kernels_of(graph, target)) == [("contract", ["bf16"]), ("contract", ["bf16"])]


def _loss(w: Any, v: Any, x: Any) -> Any:
    return lnp.sum((lnp.tanh(x @ w) @ v) ** 2)


@pytest.mark.parametrize("target", [Target(), STORING])
def test_kernels_with_stored_roundings_compute_what_the_graph_does(target: Target) -> None:
    """In float64, where operands are rounded all the same: the order of sums is all that differs."""
    arguments = f32(24, 24), f32(24, 24), f32(24, 24)
    graph = traced(lx.grad(_loss, (0, 1)), *arguments)
    program = kernels_of(graph, target)
    random = np.random.default_rng(0)
    arrays = [random.normal(size=argument.shape) for argument in arguments]
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
