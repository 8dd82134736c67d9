"""Products of extents that are no multiples of four, of arrays in windows: operands are read in texels of one word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.ir.graph import Graph
from tests.backends.vulkan.emit.strided.strided_products import ORDERS, RANDOM, cpu_device, numbers, operands, product
from tests.backends.vulkan.run.execution import assert_agrees, run


def _sources(graph: Graph) -> set[str]:
    return {dispatch.shader.source for dispatch in cpu_device().lower(graph).plan.dispatches}


def _products(orders: tuple[str, ...], sizes: list[tuple[int, int, int]]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of a product of each size and order, and its arguments."""
    cases = [(order, size) for size in sizes for order in orders]
    arrays = [array for order, size in cases for array in operands(*size, order)]

    def products(*arrays: Any) -> tuple[Any, ...]:
        return tuple(
            product(left, right, order)
            for left, right, (order, _) in zip(arrays[::2], arrays[1::2], cases, strict=True)
        )

    return products, arrays


def test_small_products_of_all_orders_share_a_shader(tile: BroadcastTile) -> None:
    """Tiles end in a row and at its end, and lines begin at a vector, and one, two and three elements behind one."""
    sizes = [(35, 131, tile.columns + n) for n in (1, 2, 3, 5)]
    products, arrays = _products(ORDERS, sizes)
    graph = lx.trace(products)(*arrays)
    assert_agrees(graph, arrays, device=cpu_device())
    (source,) = _sources(graph)
    sees_windows = cpu_device().profile.descriptor_bytes > 0
    assert all((f"texelFetch(elements{slot}" in source) == sees_windows for slot in (0, 1))


def test_larger_products_share_it_too(tile: BroadcastTile) -> None:
    """Sums and rows of all rests of four."""
    products, arrays = _products(ORDERS, [(67, 133, 151), (97, 99, 130), (131, 89, 101), (66, 110, 159)])
    graph = lx.trace(products)(*arrays)
    assert_agrees(graph, arrays, device=cpu_device())
    assert len(_sources(graph)) == 1


@pytest.mark.parametrize(
    "sizes", [(127, 128, 129), (129, 128, 127), (128, 131, 128), (129, 132, 128), (64, 300, 67)], ids=str
)
def test_some_arrays_are_aligned(tile: BroadcastTile, sizes: tuple[int, int, int]) -> None:
    products, arrays = _products(ORDERS, [sizes])
    assert_agrees(lx.trace(products)(*arrays), arrays, device=cpu_device())


def test_fewer_rows_and_columns_than_a_tile_has(tile: BroadcastTile) -> None:
    products, arrays = _products(ORDERS, [(5, 1001, 7), (3, 2001, tile.columns + 9), (65, 901, 2)])
    assert_agrees(lx.trace(products)(*arrays), arrays, device=cpu_device())


def test_batches_and_what_the_sum_meets(tile: BroadcastTile) -> None:
    """A bias, a matrix, and functions; batches begin anywhere, too."""
    x, w, v = numbers(3, 2, 37, 61), numbers(3, 2, 61, 69), numbers(61, 69)
    bias, matrix = numbers(69), numbers(3, 2, 37, 69)

    def products(x: Any, w: Any, v: Any, bias: Any, matrix: Any) -> Any:
        return lnp.maximum(x @ w + bias, 0.0), matrix - 0.5 * (lnp.maximum(x, 0.0) @ v), x @ w

    arrays = [x, w, v, bias, matrix]
    assert_agrees(lx.trace(products)(*arrays), arrays, device=cpu_device())


def test_arrays_whose_columns_are_no_neighbours(tile: BroadcastTile) -> None:
    """A result and an array that the sum meets, both transposed."""
    x, w, y = numbers(67, 99), numbers(99, 101), numbers(101, 67)
    assert_agrees(lx.trace(lambda x, w, y: (x @ w + y.T, (x @ w * 2.0).T))(x, w, y), [x, w, y], device=cpu_device())


@pytest.mark.parametrize("extent", [65, 66, 67, 99])
def test_a_result_in_the_place_of_what_the_sum_meets(tile: BroadcastTile, extent: int) -> None:
    """Elements that lie in two tiles, since the last one is moved back, are written once."""
    x, w = numbers(77, extent), numbers(extent, extent)
    step = lx.compile(lambda w, x: w - x.T @ x, donate_argnums=0)
    np.testing.assert_array_equal(np.asarray(step(lx.device_put(w), x)), w - x.T @ x)


def test_elements_around_those_that_are_asked_for_are_left_out(tile: BroadcastTile) -> None:
    """Those of other rows and columns, and behind the sum, are in the same arrays: none of them is added in."""
    left, right = np.full((80, 140), np.nan, np.float32), np.full((140, 90), np.inf, np.float32)
    left[:67, :133], right[:133, :85] = numbers(67, 133), numbers(133, 85)
    graph = lx.trace(lambda a, b: a[:67, :133] @ b[:133, :85])(left, right)
    (found,) = run(graph, [left, right], device=cpu_device())
    np.testing.assert_array_equal(found, left[:67, :133] @ right[:133, :85])


def test_numbers_that_are_none_stay_where_they_are(tile: BroadcastTile) -> None:
    left, right = numbers(67, 133), numbers(133, 151)
    left[3, 20], left[5, 132], right[131, 7], right[132, 150] = np.inf, np.nan, np.inf, -np.inf
    graph = lx.trace(lambda a, b: (a @ b, lnp.maximum(a, 0.0) @ b))(left, right)
    found, relu = run(graph, [left, right], device=cpu_device())
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, left @ right)
        np.testing.assert_array_equal(relu, np.maximum(left, 0.0) @ right)


def test_gradients_of_odd_layers_agree_with_double_precision() -> None:
    """Tiles as they are chosen: a step through two layers, and rounding of sums of up to 131 products."""
    x, y = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((131, 99), (131, 10)))
    params = [RANDOM.normal(size=shape).astype(np.float32) / 10 for shape in ((99, 101), (101,), (101, 10))]

    def loss(params: Any, x: Any, y: Any) -> Any:
        hidden = lnp.maximum(x @ params[0] + params[1], 0.0)
        return lnp.sum((hidden @ params[2] - y) ** 2) / 1310

    graph = lx.trace(lambda w, b, v, x, y: tuple(lx.grad(loss)([w, b, v], x, y)))(*params, x, y)
    arrays = [*params, x, y]
    exact = lx.ir.interpret(graph, *arrays, dtype=np.float64)
    for found, wanted in zip(run(graph, arrays, device=cpu_device()), exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=131 * 2.0**-23 * np.abs(wanted).max())
