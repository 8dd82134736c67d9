"""Whether a CPU driver has a convolution's windows as the rows of its product or as the columns, and in which steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lavax.backends.vulkan.emit.contract.choose import choose_schedule
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, TensorType, float32, interpret, verify
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build import builder
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.prepare.pipeline import prepare


def _graph(image: tuple[int, ...], kernels: tuple[int, ...], stride: int = 1) -> Graph:
    """A convolution of images and kernels whose channels come first, padded if the kernels are of odd sizes."""
    x, w = input_node("x", TensorType(image, float32)), input_node("w", TensorType(kernels, float32))
    around = (kernels[2] // 2 * (kernels[2] % 2),) * 2
    numbers = {"stride": (stride,) * 2, "low": around, "high": around, "dilation": (1, 1), "interior": (0, 0)}
    axes = {"window": ((2, 3), (2, 3)), "contract": ((1,), (1,)), "batch": ((), ())}
    return graph_of([x, w], [builder.build("conv", x, w, **axes, **numbers)])


def _product(graph: Graph, profile: DeviceProfile) -> Node:
    found = prepare(graph, target_of(profile, 1 << 30, 1 << 28))
    verify(found)
    (product,) = (node for node in found.nodes if node.op == "dot")
    return product


def _rows(image: tuple[int, ...], kernels: tuple[int, ...], profile: DeviceProfile = CPU_DRIVER) -> str:
    sizes = sizes_of(_product(_graph(image, kernels), profile))
    return {(kernels[0],): "channels"}.get(sizes.rows, "pixels")


@pytest.mark.parametrize(
    "image, kernels, rows",
    [
        # windows are read element by element, and more often if they are columns
        ((1, 64, 56, 56), (64, 64, 3, 3), "pixels"),
        ((1, 512, 7, 7), (512, 512, 3, 3), "pixels"),
        # few channels would leave most of a tile's columns empty
        ((1, 64, 56, 56), (8, 64, 3, 3), "channels"),
        # tiles of 28 rows divide 14 × 14 pixels, tiles of 64 columns do not
        ((1, 1024, 14, 14), (256, 1024, 1, 1), "pixels"),
        # a large result is written in vectors if pixels are columns
        ((1, 64, 56, 56), (256, 64, 1, 1), "channels"),
        # so is a single window, as in the gradient by kernels of one pixel
        ((1024, 1, 14, 14), (256, 1, 14, 14), "channels"),
    ],
)
def test_the_side_of_windows(image: tuple[int, ...], kernels: tuple[int, ...], rows: str) -> None:
    assert _rows(image, kernels) == rows


def test_only_cpu_drivers_whose_lanes_share_loads_choose() -> None:
    """Without shuffles an invocation loads its own rows and columns; then pixels are columns, as they are in memory."""
    without = replace(CPU_DRIVER, subgroup_shuffle=False)
    assert _rows((1, 64, 56, 56), (64, 64, 3, 3), profile=without) == "channels"


@pytest.mark.parametrize("channels, size, summed", [(3, 7, 148), (3, 3, 28), (4, 3, 36), (1, 3, 9)])
def test_long_sums_are_padded_to_whole_steps(channels: int, size: int, summed: int) -> None:
    graph = _graph((2, channels, 12, 10), (20, channels, size, size), 2)
    assert sizes_of(_product(graph, CPU_DRIVER)).k == summed
    assert sizes_of(_product(graph, GENERIC_GPU)).k == channels * size * size


@pytest.mark.parametrize("stride", [1, 2])
def test_windows_of_one_pixel_are_no_windows(stride: int) -> None:
    """So a kernel before writes the pixels once, though others read them in their own shape."""
    x = _graph((2, 8, 9, 6), (20, 8, 1, 1), stride)
    prepared = prepare(x, target_of(CPU_DRIVER, 1 << 30, 1 << 28))
    assert {"shear", "broadcast"}.isdisjoint(node.op for node in prepared.nodes)
    assert any(node.op == "slice" for node in prepared.nodes) == (stride > 1)


@pytest.mark.parametrize(
    "image, kernels, stride",
    [
        ((2, 3, 9, 7), (40, 3, 3, 3), 2),
        ((1, 5, 14, 14), (64, 5, 3, 3), 1),
        ((2, 8, 9, 6), (20, 8, 1, 1), 2),
        ((2, 8, 9, 6), (20, 8, 1, 1), 1),
    ],
)
def test_results_stay(image: tuple[int, ...], kernels: tuple[int, ...], stride: int) -> None:
    graph, random = _graph(image, kernels, stride), np.random.default_rng(1)
    arrays = [random.integers(-4, 5, node.shape).astype(np.float32) for node in graph.inputs]
    prepared = prepare(graph, target_of(CPU_DRIVER, 1 << 30, 1 << 28))
    (right,), (found,) = (interpret(g, *arrays, dtype=np.float64) for g in (graph, prepared))
    np.testing.assert_array_equal(found, right)


def _channels_last(image: tuple[int, ...], kernels: tuple[int, ...]) -> Node:
    """The product of a convolution of images and kernels whose channels come last."""
    x, w = input_node("x", TensorType(image, float32)), input_node("w", TensorType(kernels, float32))
    numbers = {"stride": (1, 1), "low": (1, 1), "high": (1, 1), "dilation": (1, 1), "interior": (0, 0)}
    axes = {"window": ((1, 2), (0, 1)), "contract": ((3,), (2,)), "batch": ((), ())}
    return _product(graph_of([x, w], [builder.build("conv", x, w, **axes, **numbers)]), CPU_DRIVER)


@pytest.mark.parametrize(
    "channels, kernels, columns", [(16, 16, 16), (64, 3, 4), (16, 9, 12), (16, 64, None), (16, 1, None)]
)
def test_pixels_are_a_lanes_own_where_kernels_are_few(channels: int, kernels: int, columns: int | None) -> None:
    """Tiles with 32 columns or more would leave most of them empty."""
    product = _channels_last((8, 16, 16, channels), (3, 3, channels, kernels))
    tile = choose_schedule(product, CPU_DRIVER)
    assert (tile.columns if isinstance(tile, BroadcastTile) and tile.turned else None) == columns


def test_plain_products_share_their_shader() -> None:
    x, w = (input_node(name, TensorType(shape, float32)) for name, shape in (("x", (2048, 144)), ("w", (144, 16))))
    tile = choose_schedule(builder.dot(x, w, ((1,), (0,)), ((), ())), CPU_DRIVER)
    assert isinstance(tile, BroadcastTile) and not tile.turned


@pytest.mark.parametrize("examples, parts", [(64, 4), (2, 1)])
def test_long_sums_of_few_results_are_split(examples: int, parts: int) -> None:
    """As of the gradient by eight kernels of one channel: one tile has all of them, and four processors a part each."""
    shapes = {"images": (examples, 18, 18, 1), "cotangents": (examples, 16, 16, 8)}
    images, cotangents = (input_node(name, TensorType(shape, float32)) for name, shape in shapes.items())
    numbers = {"stride": (1, 1), "low": (0, 0), "high": (0, 0), "dilation": (1, 1), "interior": (0, 0)}
    axes = {"window": ((1, 2), (1, 2)), "contract": ((0,), (0,)), "batch": ((), ())}
    graph = graph_of([images, cotangents], [builder.build("conv", images, cotangents, **axes, **numbers)])
    assert sizes_of(_product(graph, CPU_DRIVER)).b == parts
    arrays = [np.random.default_rng(1).integers(-4, 5, node.shape).astype(np.float32) for node in graph.inputs]
    prepared = prepare(graph, target_of(CPU_DRIVER, 1 << 30, 1 << 28))
    (right,), (found,) = (interpret(g, *arrays, dtype=np.float64) for g in (graph, prepared))
    np.testing.assert_array_equal(found, right)
