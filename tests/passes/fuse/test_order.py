"""The order of fusion's walk: routines that share a kernel come together."""
from __future__ import annotations

from textwrap import dedent

from lavax.ir import parse
from lavax.passes.fuse.order import walk
from tests.passes.lowering import program_of

_ATTRS = "scale=0.5 fill=-inf lowest=-7 highest=7 biased=false masked=false"
# The gradient of values, what is computed from it, and the gradient of keys, which needs `delta` besides.
LATE = dedent(
    f"""
    graph (q: f32[2,8,4], k: f32[2,8,4], v: f32[2,8,4], c: f32[2,8,4], l: f32[2,8]) {{
      %0 = attention_value_gradient(q, k, c, l) {_ATTRS} : f32[2,8,4]
      %1 = tanh(%0) : f32[2,8,4]
      %2 = multiply(c, v) : f32[2,8,4]
      %3 = sum(%2) axes=[2] : f32[2,8]
      %4 = attention_key_gradient(q, k, v, c, %3, l) {_ATTRS} : f32[2,8,4]
      return %1, %4
    }}
    """
)


def test_the_gradient_of_values_waits_for_that_of_keys() -> None:
    graph = parse(LATE)
    names = [node.op for node in walk(graph.nodes)]
    assert names == ["multiply", "sum", "attention_value_gradient", "attention_key_gradient", "tanh"]
    kernels = [kernel for step in program_of(graph).steps for kernel in step.kernels]
    assert [len(kernel.graph.outputs) for kernel in kernels if kernel.kind == "routine"] == [2]


def test_one_that_the_other_needs_does_not_wait() -> None:
    """Here the sums are made from the gradient of values."""
    graph = parse(LATE.replace("multiply(c, v)", "multiply(c, %0)"))
    assert [node.op for node in walk(graph.nodes)] == [node.op for node in graph.nodes]
