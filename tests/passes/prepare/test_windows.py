"""Operands of convolutions lie so that windows are loaded as vectors: which are moved, and that values stay."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile, MatrixShape
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, interpret, parse
from lavax.passes.build.contraction_geometry import lies_scattered, neighbours_of
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare import pipeline
from lavax.passes.prepare.windows import with_windows_in_vectors
from lavax.passes.simplify import simplify

MATRICES = (MatrixShape("bf16", 16, 8, 16),)
GPU = replace(GENERIC_GPU, matrices=MATRICES, float16=True, storage_16bit=True, memory_model=True)
LARGE = ((4, 28, 28, 64), (64, 64, 3, 3), (128, 64, 3, 3))
SMALL = ((2, 10, 12, 3), (6, 3, 3, 3), (4, 6, 3, 3))
conv = partial(lax.conv_general_dilated, padding="SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))


def step(x: Any, first: Any, second: Any, stride: int = 1) -> Any:
    """The gradients of two convolutions with a norm between them, in bfloat16: in the middle of a graph."""

    def loss(x: Any, first: Any, second: Any) -> Any:
        x, first, second = (each.astype("bfloat16") for each in (x, first, second))
        hidden = nn.relu(conv(x, first, (1, 1)).astype("float32"))
        hidden = hidden / lnp.sqrt(lnp.mean(hidden * hidden, (0, 1, 2), keepdims=True) + 1e-3)
        found = conv(hidden.astype("bfloat16"), second, (stride, stride))
        return 3 * lnp.sum(lnp.sin(found.astype("float32")))

    return lx.grad(loss, argnums=(0, 1, 2))(x, first, second)


def graph_of_step(shapes: tuple[tuple[int, ...], ...], stride: int) -> Graph:
    kinds = [lx.ShapeDtype(shape, "float32") for shape in shapes]
    return simplify(inline_calls(lx.trace(partial(step, stride=stride))(*kinds)))


def device_of(profile: DeviceProfile) -> VulkanBackend:
    found = VulkanBackend()
    found.profile = profile
    found.__dict__.update(_memory_bytes=1 << 36, _largest_allocation=1 << 34)
    return found


def products_of(graph: Graph) -> Iterator[Node]:
    for each in steps_of(device_of(GPU).lower(graph).kernels.steps):
        yield from (node for node in each.kernel.graph.nodes if node.op == "dot")


def read_number_by_number(graph: Graph) -> int:
    """How many operands of products have no neighbours that are neighbours in memory."""
    sides = (neighbours_of(product, side) for product in products_of(graph) for side in range(2))
    return sum(not (side.summed or side.free) for side in sides)


@pytest.mark.parametrize("stride", [1, 2])
def test_no_product_of_windows_reads_number_by_number(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of_step(LARGE, stride)
    assert read_number_by_number(graph) == 0
    without = tuple(each for each in pipeline.PASSES if each.name != "windows")
    monkeypatch.setattr(pipeline, "PASSES", without)
    assert read_number_by_number(graph) >= 3


def test_weights_are_rounded_once_into_the_order_that_all_read() -> None:
    written = [
        each.kernel.graph
        for each in steps_of(device_of(GPU).lower(graph_of_step(LARGE, 1)).kernels.steps)
        if [node.shape for node in each.kernel.graph.inputs] == [(128, 64, 3, 3)]
    ]
    assert [[node.op for node in graph.nodes] for graph in written] == [["transpose", "cast"]]
    assert written[0].outputs[0].shape == (3, 3, 64, 128)


@pytest.mark.parametrize("stride", [1, 2])
def test_values_stay(stride: int) -> None:
    target = target_of(GPU, 1 << 36, 1 << 34)
    stages = dict(pipeline.stages(graph_of_step(SMALL, stride), target))
    before, after = stages["roundings"], stages["windows"]
    assert str(before) != str(after)
    arrays = [np.random.default_rng(n).normal(size=shape).astype(np.float32) for n, shape in enumerate(SMALL)]
    for got, want in zip(interpret(after, *arrays), interpret(before, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2 * np.abs(want).max())  # sums in another order


def test_weights_of_windows_that_lie_along_them_stay() -> None:
    """Sequences with channels first: the sum goes along the weights' last axes."""

    def function(x: Any, weight: Any) -> Any:
        x, weight = x.astype("bfloat16"), weight.astype("bfloat16")
        return lax.conv_general_dilated(x, weight, (1,), "SAME")

    kinds = (lx.ShapeDtype((1, 80, 3000), "float32"), lx.ShapeDtype((384, 80, 3), "float32"))
    graph = simplify(inline_calls(lx.trace(function)(*kinds)))
    stages = dict(pipeline.stages(graph, target_of(GPU, 1 << 36, 1 << 34)))
    assert str(stages["windows"]) == str(stages["roundings"])


def test_images_are_read_with_channels_last() -> None:
    """The gradient of weights, whose windows' rows were ordered by channel, then by element of the window."""
    rest = "stride=[1,1] low=[1,1] high=[1,1] interior=[0,0] dilation=[1,1]"
    graph = parse(f"""
        graph (x: f32[2,6,5,3], g: f32[2,6,5,4]) {{
          %0 = transpose(x) axes=[0,3,1,2] : f32[2,3,6,5]
          %1 = conv(%0, g) window=[2,3]x[1,2] {rest} contract=[0]x[0] : f32[3,3,3,4]
          return %1
        }}
    """)
    found = with_windows_in_vectors(graph, target_of(GPU, 1 << 36, 1 << 34))
    (convolution,) = (node for node in found.nodes if node.op == "conv")
    assert convolution.operands == found.inputs and convolution.attrs["window"][0] == (1, 2)
    arrays = [np.random.default_rng(n).normal(size=node.shape) for n, node in enumerate(graph.inputs)]
    for got, want in zip(interpret(found, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


GROUPED = """
    graph (x: bf16[2,6,5,{channels}], w: f32[12,{each},3,3], g: f32[4,2,6,5,3]) {{
      %0 = transpose(x) axes=[0,3,1,2] : bf16[2,{channels},6,5]
      %1 = reshape(%0) : bf16[2,4,{each},6,5]
      %2 = cast(%1) : f32[2,4,{each},6,5]
      %3 = cast(w) : bf16[12,{each},3,3]
      %4 = reshape(%3) : bf16[4,3,{each},3,3]
      %5 = cast(%4) : f32[4,3,{each},3,3]
      %6 = conv(%2, {right}) {axes} {rest} batch=[1]x[0] precision="bf16" : {result}
      return %6
    }}
"""
REST = "stride=[1,1] low=[1,1] high=[1,1] interior=[0,0] dilation=[1,1]"


@pytest.mark.parametrize(
    "right, axes, result",
    [
        ("%5", "window=[3,4]x[3,4] contract=[2]x[2]", "f32[4,2,6,5,3]"),
        ("g", "window=[3,4]x[2,3] contract=[0]x[1]", "f32[4,16,3,3,3]"),
    ],
    ids=["convolution", "gradient of weights"],
)
def test_groups_are_read_with_channels_last(right: str, axes: str, result: str) -> None:
    """Windows go over what memory holds, of which groups are a part of the last axis."""
    graph = parse(GROUPED.format(right=right, axes=axes, result=result, rest=REST, channels=64, each=16))
    found = with_windows_in_vectors(graph, target_of(GPU, 1 << 36, 1 << 34))
    (convolution,) = (node for node in found.nodes if node.op == "conv")
    left = convolution.operands[0]
    assert convolution.attrs["window"][0] == (1, 2)
    assert left.shape == (2, 6, 5, 4, 16)
    assert [left.op, left.operands[0].op, left.operands[0].operands[0].op] == ["cast", "reshape", "input"]
    rounding = [node for node in found.nodes if node.op == "cast" and node.dtype.bits == 16]
    assert [node.shape for node in rounding] == ([(3, 3, 16, 12)] if right == "%5" else [])
    generator = np.random.default_rng(3)
    arrays = [generator.integers(-3, 4, node.shape).astype(np.float32) for node in graph.inputs]
    for got, want in zip(interpret(found, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_groups_of_few_channels_stay() -> None:
    axes, result = "window=[3,4]x[3,4] contract=[2]x[2]", "f32[4,2,6,5,3]"
    graph = parse(GROUPED.format(right="%5", axes=axes, result=result, rest=REST, channels=32, each=8))
    found = with_windows_in_vectors(graph, target_of(GPU, 1 << 36, 1 << 34))
    assert str(found).split("{")[1] == str(graph).split("{")[1]


@pytest.mark.parametrize("precision, is_copied", [(' precision="bf16"', True), ("", False)])
def test_weights_of_16_bits_that_lie_apart_are_copied_sooner(precision: str, is_copied: bool) -> None:
    """From 128 reads of an element on, not 512."""
    graph = parse(f"""
        graph (x: f32[256,3,3,64], w: f32[128,64,3,3]) {{
          %0 = transpose(w) axes=[2,3,1,0] : f32[3,3,64,128]
          %1 = dot(x, %0) contract=[1,2,3]x[0,1,2]{precision} : f32[256,128]
          return %1
        }}
    """)
    assert lies_scattered(graph.nodes[-1], 1) == is_copied


def test_devices_that_stage_no_operands_keep_the_graph() -> None:
    graph = graph_of_step(SMALL, 1)
    assert with_windows_in_vectors(graph, target_of(CPU_DRIVER, 1 << 36, 1 << 34)) is graph
