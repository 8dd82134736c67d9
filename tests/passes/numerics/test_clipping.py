"""Comparisons of clipped values: which of them are made of the clipped value, and that they say the same."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from lavax.ir import interpret, parse
from lavax.passes.numerics.clipping import comparing_clipped_values
from tests.passes.lowering import f32, program_of_function

SPECIAL = np.array([-np.inf, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan], np.float32)

# A clip of a value at 1, and a comparison of that value that is left as it is by the clip.
SAME = [
    ("where(%2, %1, %0)", "less_equal", "less_equal"),
    ("where(%2, %0, %1)", "greater", "greater"),
    ("where(%2, %1, %0)", "greater_equal", "greater_equal"),
    ("where(%2, %0, %1)", "less", "less"),
    ("where(%2, %1, %0)", "less_equal", "greater"),
    ("maximum(%0, %1)", "greater", "greater"),
    ("maximum(%0, %1)", "less_equal", "less_equal"),
    ("minimum(%0, %1)", "less", "less"),
    ("minimum(%0, %1)", "greater_equal", "greater_equal"),
]
OTHER = [
    ("where(%2, %1, %0)", "less", "less"),
    ("where(%2, %0, %1)", "less_equal", "less_equal"),
    ("where(%2, %0, %1)", "greater", "less"),
    ("maximum(%0, %1)", "less", "less"),
    ("maximum(%0, %1)", "equal", "equal"),
    ("minimum(%0, %1)", "greater", "greater"),
]


def _graph(clip: str, condition: str, asked: str, bound: str = "1.0", more: str = "%3, %5") -> str:
    return dedent(f"""
        graph (y: f32[10], z: f32[10]) {{
          %0 = add(y, y) : f32[10]
          %1 = constant() value={bound} : f32[10]
          %2 = {condition}(%0, %1) : bool[10]
          %3 = {clip} : f32[10]
          %4 = {asked}(%0, %1) : bool[10]
          %5 = where(%4, z, y) : f32[10]
          return {more}
        }}
    """)


def _compared(text: str) -> set[str]:
    """What kinds of nodes are compared once the graph has been rewritten; results stay the same."""
    before = parse(text)
    after = comparing_clipped_values(before)
    arguments = SPECIAL / 2, SPECIAL[::-1].copy()
    for got, want in zip(interpret(after, *arguments), interpret(before, *arguments), strict=True):
        np.testing.assert_array_equal(got, want)
    (choice,) = (node for node in after.nodes if node.op == "where" and node is after.outputs[1])
    return {choice.operands[0].operands[0].op}


@pytest.mark.parametrize(("clip", "condition", "asked"), SAME)
def test_clipped_values_are_asked(clip: str, condition: str, asked: str) -> None:
    assert _compared(_graph(clip, condition, asked)) == {clip.split("(")[0]}


@pytest.mark.parametrize(("clip", "condition", "asked"), OTHER)
def test_comparisons_that_a_clip_changes_stay(clip: str, condition: str, asked: str) -> None:
    assert _compared(_graph(clip, condition, asked)) == {"add"}


@pytest.mark.parametrize(
    "text",
    [
        _graph("maximum(%0, %1)", "greater", "greater", more="%3, %5, %0"),
        _graph("maximum(%0, %1)", "greater", "greater").replace("where(%4, z, y)", "where(%4, z, %0)"),
        _graph("maximum(%0, %1)", "greater", "greater", bound="nan"),
        _graph("maximum(%0, %1)", "greater", "greater").replace("%4 = greater(%0, %1)", "%4 = greater(%0, z)"),
    ],
    ids=["a result", "read by others", "no bound", "another bound"],
)
def test_what_is_read_by_others_is_asked_itself(text: str) -> None:
    assert _compared(text) == {"add"}


def test_a_comparison_that_only_clips_stays() -> None:
    graph = parse(_graph("where(%2, %0, %1)", "greater", "greater").replace("where(%4, z, y)", "add(z, y)"))
    assert comparing_clipped_values(graph) is graph


def test_products_read_what_relu_gave_and_do_not_make_it_again() -> None:
    def loss(w: lx.Array, v: lx.Array, x: lx.Array) -> lx.Array:
        return lx.numpy.sum(lx.numpy.tanh(nn.relu(x @ w) @ v))

    gradient = lx.grad(loss, argnums=(0, 1))
    program = program_of_function(gradient, f32(32, 48), f32(48, 24), f32(40, 32))
    kernels = [kernel for step in program.steps for kernel in step.kernels if kernel.kind == "contract"]
    chosen = [node.operands for kernel in kernels for node in kernel.graph.nodes if node.op == "where"]
    assert len(kernels) == 5
    assert len(chosen) == 2, "relu behind the first product, and its derivative behind that of the second"
    assert all(any(operand.op == "dot" for operand in operands) for operands in chosen)
