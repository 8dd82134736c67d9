"""Programs whose temporaries need more than one allocation, on a device that allocates little at once."""
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.errors import DeviceError
from lavax.ir import Graph, interpret
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import run
from tests.random_graphs import WITH_REGIONS, random_graph

LARGEST = 1 << 16


@pytest.fixture
def small() -> VulkanBackend:
    device = VulkanBackend()
    vars(device)["_largest_allocation"] = LARGEST
    return device


def _arena(graph: Graph, device: VulkanBackend) -> list[int]:
    return device.lower(graph).plan.arena_blocks


def _layers(x: Any, w: Any) -> Any:
    for layer in w:
        x = lnp.tanh(x @ layer)
    return lnp.sum(x**2)


def _in_a_loop(x: Any, w: Any) -> Any:
    """The body's temporaries need several allocations too."""

    def body(carry: Any, layer: Any) -> tuple[Any, Any]:
        held = [lnp.tanh((carry + number) @ layer) for number in range(8)]
        return lnp.tanh(sum(one @ (one.T @ other) for one, other in pairwise(held)) / 512), None

    return lnp.sum(lx.scan(body, x, w)[0] ** 2)


@pytest.mark.parametrize(("loss", "layers"), [(_layers, 20), (_in_a_loop, 3)])
def test_a_gradient_over_several_allocations(loss: Any, layers: int, small: VulkanBackend) -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) / 8 for shape in ((256, 16), (layers, 16, 16))]
    graph = simplify(lx.trace(lx.grad(loss, (0, 1)))(*arrays))
    blocks = _arena(graph, small)
    assert len(blocks) > 3 and all(0 < block <= LARGEST for block in blocks)
    for got, plain, exact in zip(
        run(graph, arrays, device=small), run(graph, arrays), interpret(graph, *arrays), strict=True
    ):
        np.testing.assert_array_equal(got, plain)
        np.testing.assert_allclose(got, exact, rtol=0, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_over_many_allocations(seed: int) -> None:
    device = VulkanBackend()
    vars(device)["_largest_allocation"] = 1024
    graph, arrays = random_graph(seed, operations=WITH_REGIONS)
    for got, want in zip(run(graph, arrays, device=device), interpret(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, want.astype(got.dtype))


def test_a_program_without_temporaries_has_one_empty_allocation(small: VulkanBackend) -> None:
    assert _arena(lx.trace(lambda x: x + 1)(np.zeros(4, np.float32)), small) == [0]


def test_an_array_that_is_larger_than_an_allocation_is_refused(small: VulkanBackend) -> None:
    x = lx.ShapeDtype((64, 512), "float32")
    with pytest.raises(DeviceError) as refused:
        small.lower(lx.trace(lambda x: lnp.sum(lnp.tanh(x @ x.T) @ x))(x)).compile()
    message = str(refused.value)
    assert "f32[64,512] needs 131072 bytes, but this device allocates at most 65536 for one array" in message
    assert "the argument x" in message and "Use smaller batches" in message


def test_a_result_that_is_larger_is_named_with_its_line(small: VulkanBackend) -> None:
    x = lx.ShapeDtype((128, 8), "float32")
    with pytest.raises(DeviceError, match=r"f32\[128,129\] needs 66048 bytes.*: the result of \w+, at .*\.py:\d"):
        small.lower(lx.trace(lambda x: lnp.concatenate([x @ x.T, x[:, :1]], axis=1))(x)).compile()
