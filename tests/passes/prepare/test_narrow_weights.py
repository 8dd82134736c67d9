"""Weights that have 16 bits are copied in the order of the windows, once for all convolutions that read them often."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret, parse
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import Copies, neighbours_of
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare import pipeline, windows
from lavax.passes.prepare.windows import with_windows_in_vectors
from lavax.passes.simplify import remove_stop_gradient, simplify
from tests.backends.vulkan.run.execution import assert_agrees, backend_with
from tests.passes.prepare.test_windows import GPU, REST, device_of

Function = Callable[[Any, Any], Any]
conv = partial(lax.conv_general_dilated, padding="SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))
apart = partial(conv, window_strides=(1, 1), rhs_dilation=(2, 1))
sequence = partial(lax.conv_general_dilated, padding="SAME", dimension_numbers=("NWC", "OIW", "NWC"))


def spread(x: Any, weights: Any) -> Any:
    """Images with channels last."""
    return nn.conv_transpose2d(x.transpose(0, 3, 1, 2), weights, stride=2, padding=1)


def spread_volume(x: Any, weights: Any) -> Any:
    return nn.conv_transpose3d(x.transpose(0, 4, 1, 2, 3), weights, stride=2, padding=1)


def gradient(x: Any, weights: Any) -> Any:
    """By the operand of a convolution, which reads the weights flipped: in the middle of a graph."""

    def loss(x: Any) -> Any:
        return lnp.sum(lnp.sin(conv(2 * x, weights, (1, 1)).astype("float32")))

    return 3 * lx.grad(loss)(x)


# The function, and the shapes of images and weights: some of which a copy pays for, and others for the interpreter.
Shapes = tuple[tuple[int, ...], tuple[int, ...]]
CASES: dict[str, tuple[Function, Shapes, Shapes]] = {
    "windows": (partial(conv, window_strides=(1, 1)), ((4, 16, 16, 64), (64, 64, 3, 3)), ((2, 5, 4, 8), (6, 8, 3, 3))),
    "strided": (partial(conv, window_strides=(2, 2)), ((4, 32, 32, 64), (64, 64, 3, 3)), ((2, 5, 4, 8), (6, 8, 3, 3))),
    "dilated": (apart, ((4, 16, 16, 64), (64, 64, 3, 3)), ((2, 5, 4, 8), (6, 8, 3, 3))),
    "grouped": (
        partial(conv, window_strides=(1, 1), feature_group_count=2),
        ((4, 16, 16, 128), (128, 64, 3, 3)),
        ((2, 5, 4, 32), (8, 16, 3, 3)),
    ),
    "sequences": (partial(sequence, window_strides=(1,)), ((8, 512, 64), (64, 64, 5)), ((2, 9, 8), (6, 8, 3))),
    "transposed": (spread, ((16, 16, 16, 128), (128, 64, 4, 4)), ((1, 16, 16, 16), (16, 8, 4, 4))),
    "transposed volumes": (spread_volume, ((4, 8, 8, 8, 64), (64, 32, 4, 4, 4)), ((1, 8, 8, 4, 16), (16, 8, 4, 4, 4))),
    "gradient": (gradient, ((4, 16, 16, 64), (64, 64, 3, 3)), ((2, 5, 4, 8), (6, 8, 3, 3))),
}


def traced(function: Function, shapes: Shapes, dtype: str) -> Graph:
    kinds = [lx.ShapeDtype(shape, dtype) for shape in shapes]
    return simplify(inline_calls(remove_stop_gradient(lx.trace(function)(*kinds))))


def weights_read_apart(graph: Graph) -> Iterator[bool]:
    """Of each product, whether it reads its right operand number by number."""
    for each in steps_of(device_of(GPU).lower(graph).kernels.steps):
        for node in each.kernel.graph.nodes:
            if node.op == "dot":
                side = neighbours_of(node, 1)
                yield not (side.summed or side.free)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_weights_are_read_in_vectors_of_one_copy(name: str, dtype: str) -> None:
    function, shapes, _ = CASES[name]
    graph = traced(function, shapes, dtype)
    products = list(weights_read_apart(graph))
    assert products and not any(products)
    readers = [
        each.kernel.graph
        for each in steps_of(device_of(GPU).lower(graph).kernels.steps)
        if shapes[1] in [node.shape for node in each.kernel.graph.inputs]
    ]
    assert [len(reader.outputs) for reader in readers] == [1]
    assert not any(node.op == "dot" for node in readers[0].nodes)


@pytest.mark.parametrize("name", ["transposed", "transposed volumes"])
def test_phases_would_read_number_by_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes, _ = CASES[name]
    without = tuple(each for each in pipeline.PASSES if each.name != "windows")
    monkeypatch.setattr(pipeline, "PASSES", without)
    assert all(weights_read_apart(traced(function, shapes, "bfloat16")))


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("name", CASES)
def test_values_stay(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "REORDERED_NARROW", Copies(1, 1))
    function, _, shapes = CASES[name]
    graph = traced(function, shapes, DTYPES[dtype].user)
    generator = np.random.default_rng(5)
    arrays = [DTYPES[dtype].rounded(generator.normal(size=shape).astype(np.float32)) for shape in shapes]
    stages = dict(pipeline.stages(graph, target_of(GPU, 1 << 36, 1 << 34)))
    assert str(stages["roundings"]) != str(stages["windows"])
    for got, want in zip(interpret(stages["windows"], *arrays), interpret(stages["roundings"], *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    assert_agrees(graph, arrays, device=backend_with(kind="gpu"))


def test_weights_that_are_read_seldom_stay() -> None:
    graph = traced(CASES["windows"][0], ((1, 8, 8, 64), (64, 64, 3, 3)), "bfloat16")
    stages = dict(pipeline.stages(graph, target_of(GPU, 1 << 36, 1 << 34)))
    assert str(stages["windows"]) == str(stages["roundings"])


def test_what_else_reads_the_weights_reads_no_copy() -> None:
    """An optimizer's update, for example."""
    graph = parse(f"""
        graph (x: bf16[8,16,16,64], w: bf16[64,64,3,3]) {{
          %0 = cast(x) : f32[8,16,16,64]
          %1 = cast(w) : f32[64,64,3,3]
          %2 = conv(%0, %1) window=[1,2]x[2,3] {REST} contract=[3]x[1] precision="bf16" : f32[8,16,16,64]
          %3 = negate(%1) : f32[64,64,3,3]
          return %2, %3
        }}
    """)
    found = with_windows_in_vectors(graph, target_of(GPU, 1 << 36, 1 << 34))
    convolution, negated = found.outputs
    assert negated.operands[0].operands == (found.inputs[1],)
    copy = [node for node in found.nodes if node.shape == (3, 3, 64, 64)]
    assert [node.op for node in copy] == ["transpose", "cast"]
    assert convolution.operands[1].op == "cast" and convolution.operands[1].operands[0].op == "transpose"
