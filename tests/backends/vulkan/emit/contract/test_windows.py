"""Convolution and pooling with their gradients on the device, against the interpreter."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.passes.build import contraction_geometry
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import assert_agrees, backend_with

CHANNELS_LAST = ("NHWC", "HWIO", "NHWC")


def _conv(*numbers: Any, **more: Any) -> Callable[..., Any]:
    return lambda x, w: nn.conv(x, w, *numbers, **more)


def _pool(name: str, *numbers: Any, **more: Any) -> Callable[..., Any]:
    return lambda x: getattr(nn, name)(x, *numbers, **more)


# function, shapes of its arguments
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "channels first, padded, even width": (_conv(1, "SAME"), ((2, 3, 5, 8), (5, 3, 3, 3))),
    "channels first, strided, odd width": (_conv((2, 3), [(1, 2), (0, 1)]), ((2, 4, 7, 9), (6, 4, 3, 2))),
    "channels first, pixels as rows": (_conv(1, "SAME"), ((1, 4, 14, 14), (64, 4, 3, 3))),
    "channels first, windows of one pixel as rows": (_conv(), ((1, 12, 14, 14), (64, 12, 1, 1))),
    "channels first, a padded sum": (_conv(2, "SAME"), ((1, 3, 14, 14), (20, 3, 3, 3))),
    "channels last": (_conv(2, "SAME", dimension_numbers=CHANNELS_LAST), ((2, 7, 6, 4), (3, 3, 4, 8))),
    "channels last, few kernels": (_conv(1, "SAME", dimension_numbers=CHANNELS_LAST), ((4, 9, 9, 4), (3, 3, 4, 6))),
    "channels last, long sums": (_conv(1, "SAME", dimension_numbers=CHANNELS_LAST), ((20, 16, 16, 1), (3, 3, 1, 8))),
    "channels last, of odd numbers": (_conv(dimension_numbers=CHANNELS_LAST), ((1, 6, 5, 3), (2, 3, 3, 5))),
    "dilated both ways": (_conv(1, [(2, 1)], 2, 3), ((2, 3, 9), (4, 3, 3))),
    "groups": (_conv(1, 1, feature_group_count=3), ((2, 6, 5, 5), (9, 2, 3, 3))),
    "depthwise": (
        _conv(1, "SAME", dimension_numbers=CHANNELS_LAST, feature_group_count=8), ((2, 5, 5, 8), (3, 3, 1, 8))
    ),
    "three dimensions": (_conv(1, "SAME"), ((1, 2, 4, 3, 5), (3, 2, 2, 3, 3))),
    "max pooling": (_pool("max_pool", (2, 2), 2), ((2, 3, 6, 8),)),
    "padded and dilated max pooling": (_pool("max_pool", (3, 2), (1, 2), "SAME", (2, 1), axes=(1, 2)), ((2, 7, 6, 3),)),
    "min pooling of a line": (_pool("min_pool", (3,), 1, 1), ((17,),)),
    "average pooling": (_pool("avg_pool", (3, 3), 2, "SAME", count_include_pad=False), ((2, 3, 7, 7),)),
    "sum over all": (_pool("sum_pool", (16, 20)), ((3, 16, 20),)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_gradients(name: str) -> None:
    _check_value_and_gradients(*FUNCTIONS[name])


def _check_value_and_gradients(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], device: VulkanBackend | None = None
) -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    out = lx.eval_shape(function, *arrays)
    arrays.append(random.normal(size=out.shape).astype(np.float32))

    def both(*values: Any) -> Any:
        value, pull = lx.vjp(function, *values[:-1])
        return value, *pull(values[-1])

    graph = lx.trace(both)(*arrays)
    assert_agrees(graph if device is None else simplify(graph), arrays, ulps=16, device=device)


# Large enough for a workgroup's tile, small enough for a driver on processors.
STAGED: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "channels first": (_conv(1, "SAME"), ((2, 4, 8, 8), (32, 4, 3, 3))),
    "channels first, of odd numbers": (_conv((2, 1), [(1, 2), (0, 1)]), ((3, 5, 9, 7), (19, 5, 3, 2))),
    "channels last": (_conv(1, "SAME", dimension_numbers=CHANNELS_LAST), ((2, 6, 6, 16), (3, 3, 16, 20))),
    "groups": (_conv(1, 1, feature_group_count=2), ((2, 16, 5, 5), (36, 8, 3, 3))),
    "a layer behind a layer": (
        lambda x, first, second: nn.conv(nn.relu(nn.conv(x, first, 1, 1)), second, 1, "SAME"),
        ((2, 3, 6, 8), (16, 3, 3, 3), (24, 16, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", STAGED)
def test_value_and_gradients_with_the_schedules_of_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are copied into order however few they are."""
    when = contraction_geometry.Copies(reads=64, products=1)
    monkeypatch.setattr(contraction_geometry, "_REORDERED", when)
    _check_value_and_gradients(*STAGED[name], device=backend_with(kind="gpu"))


@pytest.mark.parametrize("extent", [4, 41])
def test_images_of_ones(extent: int) -> None:
    x, w = np.ones((1, 1, extent, extent), np.float32), np.ones((1, 1, 3, 3), np.float32)
    found = np.asarray(nn.conv(x, w, 1, 1))[0, 0]
    inside = np.full(extent, 3.0)
    inside[[0, -1]] = 2
    np.testing.assert_array_equal(found, np.outer(inside, inside))
