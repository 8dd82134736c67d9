"""Convolutions of single channels with kernels of GPUs: values, gradients in the middle of a graph, and the shader."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.ir import Graph, Node, interpret
from lavax.ir.ops.window import windows_along
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.decompose import depthwise
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import assert_shader, dispatch_of
from tests.backends.vulkan.run.execution import backend_with, run

RANDOM = np.random.default_rng(20)
# Shape of the images (channels last), window, and the arguments of the convolution.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 9, 11, 8), (3, 3), {}),
    ((1, 12, 12, 12), (7, 7), {}),
    ((2, 8, 10, 9), (3, 3), dict(window_strides=(2, 2))),
    ((3, 7, 7, 16), (5, 5), dict(padding=((2, 1), (0, 3)))),
    ((2, 14, 9, 8), (3, 2), dict(rhs_dilation=(2, 3), padding=((-1, 2), (1, 1)))),
    ((2, 6, 5, 8), (3, 3), dict(lhs_dilation=(2, 2), padding=((1, 1), (2, 0)))),
    ((2, 40, 8), (4,), dict(padding=((3, 0),))),
    ((2, 50, 10), (11,), dict(window_strides=(3,))),
    ((2, 5, 6, 7, 8), (3, 3, 3), {}),
]


def _convolved(x: Any, weights: Any, settings: dict[str, Any]) -> Any:
    spatial = "DHW"[-(x.ndim - 2) :]
    arguments = {"window_strides": (1,) * (x.ndim - 2), "padding": "SAME", **settings}
    numbers = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    return lax.conv_general_dilated(
        x, weights, **arguments, dimension_numbers=numbers, feature_group_count=x.shape[-1]
    )


def _graph_of(function: Any, *arrays: np.ndarray) -> Graph:
    return simplify(inline_calls(lx.trace(function)(*(lx.ShapeDtype(x.shape, x.dtype.name) for x in arrays))))


def _depthwise(graph: Graph) -> list[Node]:
    return [node for node in prepare(graph, backend_with(kind="gpu").target).nodes if node.op == "depthwise_conv"]


@pytest.fixture(autouse=True)
def of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depthwise, "_LIMITS", replace(depthwise._LIMITS, least_products=1, busy=1 << 12))


@pytest.mark.parametrize(("shape", "window", "settings"), CASES, ids=str)
def test_values_and_gradients_are_those_of_the_interpreter(
    shape: tuple[int, ...], window: tuple[int, ...], settings: dict[str, Any]
) -> None:
    x = RANDOM.normal(size=shape).astype(np.float32)
    weights = RANDOM.normal(size=(*window, 1, shape[-1])).astype(np.float32)

    def function(x: Any, weights: Any) -> Any:
        def loss(x: Any, weights: Any) -> Any:
            found = _convolved(lnp.tanh(x), weights, settings)
            return 3 * lnp.sum(lnp.sin(found)), found

        (_, found), gradients = lx.value_and_grad(loss, argnums=(0, 1), has_aux=True)(x, weights)
        return found, *gradients

    graph = _graph_of(function, x, weights)
    assert len(_depthwise(graph)) >= 3
    for found, expected in zip(
        run(graph, [x, weights], device=backend_with(kind="gpu")), interpret(graph, x, weights), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())


def test_operands_of_bfloat16_are_read_in_bfloat16() -> None:
    x, weights = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((2, 9, 11, 8), (3, 3, 1, 8)))

    def function(x: Any, weights: Any) -> Any:
        def loss(x: Any, weights: Any) -> Any:
            narrow = [lnp.tanh(each).astype("bfloat16") for each in (x, weights)]
            return 3 * lnp.sum(lnp.sin(_convolved(*narrow, {}).astype("float32")))

        return lx.grad(loss, argnums=(0, 1))(x, weights)

    graph = _graph_of(function, x, weights)
    assert all(_is_narrow(operand) for node in _depthwise(graph) for operand in node.operands)
    for found, expected in zip(
        run(graph, [x, weights], device=backend_with(kind="gpu")), interpret(graph, x, weights), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=2**-7 * np.abs(expected).max())


def _is_narrow(node: Node) -> bool:
    while node.op in ("pad", "reshape", "transpose", "flip"):
        (node,) = node.operands
    return node.op == "cast" and node.operands[0].dtype.name == "bf16"


def test_channels_first_are_copied_once_for_all_that_read_them() -> None:
    """One transposition of the images and one of the weights, and none between the convolution and what follows."""
    images, window = lx.ShapeDtype((4, 32, 20, 20), "float32"), lx.ShapeDtype((32, 1, 3, 3), "float32")

    def loss(x: Any, weights: Any) -> Any:
        found = lax.conv_general_dilated(x, weights, (1, 1), "SAME", feature_group_count=32)
        return lnp.sum(lnp.sin(found))

    graph = simplify(inline_calls(lx.trace(lx.grad(loss, argnums=(0, 1)))(images, window)))
    found = backend_with(**vars(GENERIC_GPU)).lower(graph)
    kernels = [each.kernel for each in steps_of(found.kernels.steps)]
    shapes = [kernel.graph.outputs[0].shape for kernel in kernels]
    assert [kernel.kind for kernel in kernels] == ["map", "map", "routine", "map", "routine", "routine", "map", "row"]
    assert shapes[:4] == [(4, 1, 20, 20, 32), (1, 1, 3, 3, 32), (1, 4, 20, 20, 32), (1, 4, 20, 20, 32)]


@pytest.mark.parametrize("size", [7, 8])
def test_few_channels_and_several_columns_are_products(size: int) -> None:
    x, weights = np.zeros((2, 9, 9, size), np.float32), np.zeros((3, 3, 1, 2 * size), np.float32)
    graph = _graph_of(lambda x, weights: _convolved(x, weights[..., :size], {}), x, weights)
    assert len(_depthwise(graph)) == (size == 8)
    assert not _depthwise(_graph_of(lambda x, weights: _convolved(x, weights, {}), x, weights))


def test_parts_of_long_sums_are_no_more_than_their_bytes_are_worth() -> None:
    images, cotangent = np.zeros((8, 56, 56, 96), np.float32), np.zeros((7, 7, 1, 96), np.float32)
    graph = _graph_of(
        lx.grad(lambda w, x: lnp.sum(lnp.sin(_convolved(x, w, {}))), argnums=0), cotangent, images
    )
    _, gradient = _depthwise(graph)
    assert gradient.operands[1].shape == (8, 56, 56, 96)
    parts = gradient.shape[0]
    assert parts > 1 and gradient.type.nbytes <= 2 * sum(operand.type.nbytes for operand in gradient.operands)
    assert gradient.attrs["run"] % 4 == 0 and windows_along(62, 56, 1, 1) == gradient.shape[-2] == 7


def test_the_shader_loads_what_windows_share_once() -> None:
    graph = """
        graph (x: f32[1,1,6,10,8], w: f32[1,2,3,8]) {
          %0 = depthwise_conv(x, w) stride=[1,1] dilation=[1,1] run=6 : f32[1,1,5,8,8]
          return %0
        }
    """
    assert_shader(dispatch_of(graph, GENERIC_GPU), SHADER)


SHADER = """
    layout(local_size_x = 128, local_size_y = 1) in;
    void main() {
        uint64_t p0 = table.address[words[0]];
        uint64_t p1 = table.address[words[1]];
        uint64_t p2 = table.address[words[2]];
        int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_LocalInvocationID.x);
        if (i >= 10) return;
        vec4 total0 = vec4(0);
        vec4 total1 = vec4(0);
        vec4 total2 = vec4(0);
        vec4 total3 = vec4(0);
        vec4 total4 = vec4(0);
        vec4 total5 = vec4(0);
        vec4 total6 = vec4(0);
        vec4 total7 = vec4(0);
        int v1 = int(uint(i) % uint(2));
        int v5 = int(uint(i) / uint(2));
        for (int step = 0; step < 2; ++step) {
            vec4 v2 = F32x4(p1).data[(v1 + step * 6)];
            vec4 v3 = F32x4(p1).data[(v1 + step * 6 + 2)];
            vec4 v4 = F32x4(p1).data[(v1 + step * 6 + 4)];
            vec4 v6 = F32x4(p0).data[(v1 + v5 * 20 + step * 20)];
            total0 += v6 * v2;
            vec4 v7 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 2)];
            total1 += v7 * v2;
            vec4 v8 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 4)];
            total2 += v8 * v2;
            vec4 v9 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 6)];
            total3 += v9 * v2;
            vec4 v10 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 8)];
            total4 += v10 * v2;
            vec4 v11 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 10)];
            total5 += v11 * v2;
            vec4 v12 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 12)];
            total6 += v12 * v2;
            vec4 v13 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 14)];
            total7 += v13 * v2;
            total0 += v7 * v3;
            total1 += v8 * v3;
            total2 += v9 * v3;
            total3 += v10 * v3;
            total4 += v11 * v3;
            total5 += v12 * v3;
            total6 += v13 * v3;
            vec4 v14 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 16)];
            total7 += v14 * v3;
            total0 += v8 * v4;
            total1 += v9 * v4;
            total2 += v10 * v4;
            total3 += v11 * v4;
            total4 += v12 * v4;
            total5 += v13 * v4;
            total6 += v14 * v4;
            vec4 v15 = F32x4(p0).data[(v1 + v5 * 20 + step * 20 + 18)];
            total7 += v15 * v4;
        }
        F32x4(p2).data[(v1 + v5 * 16)] = total0;
        F32x4(p2).data[(v1 + v5 * 16 + 2)] = total1;
        F32x4(p2).data[(v1 + v5 * 16 + 4)] = total2;
        F32x4(p2).data[(v1 + v5 * 16 + 6)] = total3;
        F32x4(p2).data[(v1 + v5 * 16 + 8)] = total4;
        F32x4(p2).data[(v1 + v5 * 16 + 10)] = total5;
        F32x4(p2).data[(v1 + v5 * 16 + 12)] = total6;
        F32x4(p2).data[(v1 + v5 * 16 + 14)] = total7;
    }
"""
