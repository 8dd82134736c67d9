"""Values of 16 bits: moved and stored as such, and widened by what reads them."""
from __future__ import annotations

from textwrap import dedent

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret, parse
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.numerics.narrow_movement import with_narrow_movement
from lavax.passes.numerics.widen import widen
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Products, Target
from tests.passes.program_checks import check_program

# A device that brings operands of products into one order in fast memory.
STAGING = Target(Products(stages_operands=True))


def test_movement_comes_before_widening() -> None:
    graph = parse(
        dedent(
            """
            graph (x: bf16[4,6]) {
              %0 = cast(x) : f32[4,6]
              %1 = reshape(%0) : f32[2,2,6]
              %2 = transpose(%1) axes=[0,2,1] : f32[2,6,2]
              %3 = sum(%2) axes=[2] : f32[2,6]
              return %2, %3
            }
            """
        )
    )
    assert str(with_narrow_movement(graph)) == dedent(
        """\
        graph (x: bf16[4,6]) {
          %0 = reshape(x) : bf16[2,2,6]
          %1 = transpose(%0) axes=[0,2,1] : bf16[2,6,2]
          %2 = cast(%1) : f32[2,6,2]
          %3 = sum(%2) axes=[2] : f32[2,6]
          return %2, %3
        }"""
    )


def test_what_narrows_stays_where_it_is() -> None:
    graph = parse(
        dedent(
            """
            graph (x: f32[4,6]) {
              %0 = cast(x) : bf16[4,6]
              %1 = transpose(%0) axes=[1,0] : bf16[6,4]
              return %1
            }
            """
        )
    )
    assert with_narrow_movement(graph) is graph


def test_all_that_reads_a_narrow_value_reads_one_cast() -> None:
    """So routines that read the same operands are seen to, and share a kernel."""
    graph = parse(
        dedent(
            """
            graph (x: bf16[4], y: bf16[4]) {
              %0 = add(x, y) : bf16[4]
              %1 = multiply(x, y) : bf16[4]
              %2 = add(%0, %1) : bf16[4]
              return %2
            }
            """
        )
    )
    wide = widen(graph)
    assert sum(node.op == "cast" and node.operands[0] in wide.inputs for node in wide.nodes) == 2


def test_operands_of_products_that_are_put_in_order_stay_narrow() -> None:
    """Heads side by side, whose neighbours in memory are none in the product: stored in 16 bits, not in 32."""

    def function(x, w):  # type: ignore[no-untyped-def]
        heads = lnp.transpose(lnp.reshape(lnp.tanh(x), (2, 40, 4, 32)), (0, 2, 3, 1))
        return lnp.einsum("bhdt,hde->bhte", heads, w)

    kinds = lx.ShapeDtype((2, 40, 128), lnp.bfloat16), lx.ShapeDtype((4, 32, 48), lnp.bfloat16)
    graph = simplify(lx.trace(function)(*kinds))
    program = schedule(prepare(graph, STAGING), target=STAGING)
    check_program(program)
    stored = [output.type for step in program.steps for kernel in step.kernels for output in kernel.graph.outputs]
    assert len(stored) > 1 and all(type.dtype.name == "bf16" for type in stored)
    random = np.random.default_rng(0)
    arrays = [node.dtype.rounded(random.standard_normal(node.shape)) for node in graph.inputs]
    (got,), (want,) = interpret_kernels(program, *arrays), interpret(graph, *arrays)
    np.testing.assert_allclose(got, want, atol=2.0**-6 * np.abs(want).max())
