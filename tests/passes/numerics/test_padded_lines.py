"""Products by matrices read and write lines of whole vectors: what is padded, what is shared, and that values stay."""
from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.ir import Graph, interpret, parse
from lavax.ir.graph import Node
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.numerics.padded_lines import with_padded_lines
from lavax.passes.prepare.pipeline import prepare, stages
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Products, Target
from tests.passes.program_checks import check_program

PADDING = Target(Products(line=lambda dot: 2, stages_operands=True))
# A vocabulary of 65, whose logits are rounded and read by two products, as in the last layer of a language model.
LOGITS = """
    graph (x: bf16[36,34], w: bf16[65,34]) {
      %0 = cast(x) : f32[36,34]
      %1 = cast(w) : f32[65,34]
      %2 = dot(%0, %1) contract=[1]x[1] precision="bf16" : f32[36,65]
      %3 = cast(%2) : bf16[36,65]
      %4 = cast(%3) : f32[36,65]
      %5 = dot(%4, %1) contract=[1]x[0] precision="bf16" : f32[36,34]
      %6 = dot(%4, %0) contract=[0]x[0] precision="bf16" : f32[65,34]
      return %5, %6
    }
"""
PRODUCTS = {
    "odd sum, left in lines along it": ("bf16[36,33]", "bf16[33,40]", "contract=[1]x[0]", "f32[36,40]"),
    "odd sum, both in lines along it": ("bf16[36,33]", "bf16[40,33]", "contract=[1]x[1]", "f32[36,40]"),
    "odd rows": ("bf16[40,33]", "bf16[40,36]", "contract=[0]x[0]", "f32[33,36]"),
    "odd columns": ("bf16[36,40]", "bf16[40,33]", "contract=[1]x[0]", "f32[36,33]"),
    "odd lines of the result alone": ("bf16[36,40]", "bf16[33,40]", "contract=[1]x[1]", "f32[36,33]"),
    "all odd": ("bf16[37,39]", "bf16[39,41]", "contract=[1]x[0]", "f32[37,41]"),
    "a batch": ("bf16[3,36,33]", "bf16[3,33,35]", "contract=[2]x[1] batch=[0]x[0]", "f32[3,36,35]"),
    "two axes of columns": ("bf16[36,40]", "bf16[3,33,40]", "contract=[1]x[2]", "f32[36,3,33]"),
    "a vector": ("bf16[36,33]", "bf16[33]", "contract=[1]x[0]", "f32[36]"),
}


def product(left: str, right: str, attrs: str, result: str) -> Graph:
    wide = [kind.replace("bf16", "f32") for kind in (left, right)]
    text = f"""
        graph (x: {left}, w: {right}) {{
          %0 = cast(x) : {wide[0]}
          %1 = cast(w) : {wide[1]}
          %2 = dot(%0, %1) {attrs} precision="bf16" : {result}
          %3 = multiply(%2, %2) : {result}
          return %2, %3
        }}
    """
    return parse(dedent(text))


def drawn(graph: Graph) -> list[np.ndarray]:
    """Small integers, whose products and sums are exact in every order."""
    random = np.random.default_rng(0)
    return [random.integers(-4, 5, size=node.shape).astype("f") for node in graph.inputs]


def dots(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "dot"]


def short(graph: Graph) -> Graph:
    return with_padded_lines(graph, PADDING)


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_whole_lines_have_the_same_values(name: str) -> None:
    graph = product(*PRODUCTS[name])
    padded = short(graph)
    arrays = drawn(graph)
    program = schedule(prepare(graph, PADDING), target=PADDING)
    check_program(program)
    for found, through, expected in zip(
        interpret(padded, *arrays), interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(through, expected)
    (dot,) = dots(padded)
    lines = [operand.shape[-1] for operand in dot.operands] + [dot.shape[-1]]
    assert not any(length % 2 for length in lines), (name, lines)


def test_the_products_of_a_last_layer_share_what_is_padded() -> None:
    padded = short(parse(dedent(LOGITS)))
    pads = [node for node in padded.nodes if node.op == "pad"]
    assert [node.shape for node in pads] == [(66, 34), (36, 66)]
    logits, of_inputs, of_weights = dots(padded)
    assert (logits.shape, of_inputs.shape, of_weights.shape) == ((36, 66), (36, 34), (66, 34))
    # The result is rounded before it is cut, so that the product's kernel rounds it.
    rounded = next(node for node in padded.nodes if node.operands == (logits,))
    assert rounded.op == "cast" and rounded.dtype.bits == 16
    assert of_inputs.operands[0].operands == of_weights.operands[0].operands == (pads[1],)


def test_padded_arrays_are_stored_once() -> None:
    graph = parse(dedent(LOGITS))
    found = prepare(graph, PADDING)
    stored = fuse(found, PADDING).storing
    assert [node.op for node, reason in stored.items() if reason is Reason.LINES] == ["pad", "pad"]
    program = schedule(found, target=PADDING)
    check_program(program)
    kernels = [step.kernel for step in program.steps]
    assert not any(node.op == "pad" for kernel in kernels if kernel.kind == "contract" for node in kernel.graph.nodes)
    arrays = drawn(graph)
    for result, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_numbers_that_are_not_finite_stay_in_their_rows() -> None:
    graph = parse(dedent(LOGITS))
    x, w = (np.abs(array) for array in drawn(graph))
    x[3, 5] = np.inf
    w = w + 1
    for found, expected in zip(interpret(short(graph), x, w), interpret(graph, x, w), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert np.isinf(interpret(graph, x, w)[0][3]).all()


def test_another_order_is_padded_as_memory_holds_it() -> None:
    text = """
        graph (x: bf16[33,36], w: bf16[40,33]) {
          %0 = transpose(x) axes=[1,0] : bf16[36,33]
          %1 = cast(%0) : f32[36,33]
          %2 = cast(w) : f32[40,33]
          %3 = dot(%1, %2) contract=[1]x[1] precision="bf16" : f32[36,40]
          return %3
        }
    """
    graph = parse(dedent(text))
    padded = short(graph)
    assert {node.shape for node in padded.nodes if node.op == "pad"} == {(34, 36), (40, 34)}
    arrays = drawn(graph)
    np.testing.assert_array_equal(interpret(padded, *arrays)[0], interpret(graph, *arrays)[0])


@pytest.mark.parametrize(
    "left, right",
    [
        ("bf16[36,31]", "bf16[31,40]"),  # too short to be worth it
        ("f32[36,33]", "f32[33,40]"),  # not of 16 bits
    ],
)
def test_others_are_left_alone(left: str, right: str) -> None:
    graph = product(left, right, "contract=[1]x[0]", "f32[36,40]") if "bf16" in left else parse(
        dedent(f"""
        graph (x: {left}, w: {right}) {{
          %0 = dot(x, w) contract=[1]x[0] precision="" : f32[36,40]
          return %0
        }}
        """)
    )  # fmt: skip
    assert str(short(graph)) == str(graph)
    assert str(with_padded_lines(graph, Target())) == str(graph)


def test_windows_and_repeated_values_are_not_padded() -> None:
    text = """
        graph (x: bf16[33], w: bf16[33,36]) {
          %0 = broadcast(x) axes=[1] : bf16[40,33]
          %1 = cast(%0) : f32[40,33]
          %2 = cast(w) : f32[33,36]
          %3 = dot(%1, %2) contract=[1]x[0] precision="bf16" : f32[40,36]
          return %3
        }
    """
    graph = parse(dedent(text))
    assert str(short(graph)) == str(graph)
    kinds = lx.ShapeDtype((2, 33, 33, 33), lnp.bfloat16), lx.ShapeDtype((35, 33, 3, 3), lnp.bfloat16)
    graph = dict(stages(simplify(lx.trace(nn.conv)(*kinds)), PADDING))["movement"]
    assert str(short(graph)) == str(graph)
