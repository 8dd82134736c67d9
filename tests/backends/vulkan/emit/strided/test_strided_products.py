"""Products of arrays in strides, on the device: one shader, whatever the layouts, sizes and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.glsl.shader import REST_WORD
from tests.backends.vulkan.emit.strided.strided_products import ORDERS, cpu_device, numbers, operands, product
from tests.backends.vulkan.run.execution import assert_agrees, run


def assert_one_shader(function: Callable[..., Any], *arrays: np.ndarray, shaders: int = 1) -> None:
    """The results are right, and as many shaders do for all contractions."""
    graph = lx.trace(function)(*arrays)
    assert_agrees(graph, arrays, device=cpu_device())
    sources = {dispatch.shader.source for dispatch in cpu_device().lower(graph).plan.dispatches}
    assert sum("sum_end" in source for source in sources) == shaders


@pytest.mark.parametrize("multiple", [4, 1], ids=["vectors", "elements"])
def test_operands_in_every_order(tile: BroadcastTile, multiple: int) -> None:
    """Sizes that tiles divide, and that they do not, so that the last ones are moved back."""
    extra = 4 if multiple == 4 else 3
    rows, columns = tile.rows, tile.columns
    sizes = [(rows, 8, columns), (rows + extra, 16 + extra, columns + 2 * extra)][multiple == 1 :]
    arrays = [array for m, k, n in sizes for order in ORDERS for array in operands(m, k, n, order)]

    def products(*arrays: Any) -> tuple[Any, ...]:
        pairs = zip(arrays[::2], arrays[1::2], ORDERS * len(sizes), strict=True)
        return tuple(product(left, right, order) for left, right, order in pairs)

    assert_one_shader(products, *arrays)


def test_fewer_rows_and_columns_than_a_tile_has(tile: BroadcastTile) -> None:
    def products(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a @ b, c.T @ d.T

    assert_one_shader(products, numbers(5, 7), numbers(7, 10), numbers(3, 20), numbers(tile.columns + 5, 3))


def test_rest_of_a_result_in_vectors_and_few_rows(tile: BroadcastTile) -> None:
    """The left operand by elements, the right one and the result in vectors."""
    rows, columns = tile.rows - 3, 4096 * 8
    assert_one_shader(lambda a, b, c: a @ b + c, numbers(rows, 8), numbers(8, columns), numbers(rows, columns))


@pytest.mark.parametrize("columns", [0, 3], ids=["vectors", "elements"])
def test_many_arrays_some_of_one_element_a_row(tile: BroadcastTile, columns: int) -> None:
    """A normalised convolution's epilogue; the last numbers find no push constant."""
    rows, wide = tile.rows + 4, tile.columns + columns
    x, w, aside = numbers(rows, 12), numbers(12, wide), numbers(rows, wide)
    of_rows = [numbers(rows) for _ in range(4)]

    def function(x: Any, w: Any, aside: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return (x @ w) * a[:, None] + (b - c * d)[:, None] + aside

    assert_one_shader(function, x, w, aside, *of_rows)
    plan = cpu_device().lower(lx.trace(function)(x, w, aside, *of_rows)).plan
    (product,) = (dispatch for dispatch in plan.dispatches if "sum_end" in dispatch.shader.source)
    assert f"(table.address[words[{REST_WORD}]]).data[1]" in product.shader.source
    assert any(len(constant) >= 8 for constant in plan.constants)


def test_products_of_many_numbers_in_one_dispatch(tile: BroadcastTile) -> None:
    rows, wide = tile.rows, tile.columns
    arrays = [numbers(*shape) for shape in [(rows, 12), (12, wide), (rows, 8), (8, wide), (rows, wide)]]
    of_rows = [numbers(rows) for _ in range(4)]

    def function(x: Any, w: Any, y: Any, v: Any, aside: Any, *given: Any) -> Any:
        a, b, c, d = (array[:, None] for array in given)
        return (x @ w) * a + (b - c * d) + aside, (y @ v) * b + (d - a * c) + aside

    assert_one_shader(function, *arrays, *of_rows)
    dispatches = cpu_device().lower(lx.trace(function)(*arrays, *of_rows)).plan.dispatches
    (product,) = (dispatch for dispatch in dispatches if "sum_end" in dispatch.shader.source)
    assert product.groups == (2, 1, 1) and "numbers_of" in product.shader.source


def test_operands_that_start_behind_their_arrays_start() -> None:
    """Also where push constants have no room for where they start."""
    a, b, c = numbers(71, 67), numbers(66, 70), numbers(70, 66)
    assert_agrees(lx.trace(lambda a, b, c: c - a[1:, 1:] @ b[:, 4:])(a, b, c), (a, b, c), device=cpu_device())


def test_batches(tile: BroadcastTile) -> None:
    x, w, v = numbers(3, 2, tile.rows + 4, 12), numbers(3, 2, 12, tile.columns), numbers(12, tile.columns)
    assert_one_shader(lambda x, w, v: (x @ w, x @ v), x, w, v)


def test_heads_that_lie_beside_each_other(tile: BroadcastTile) -> None:
    """Operands are parts of one array, and the batch has a step for examples and one for heads; so has a result."""
    examples, heads, size, length = 2, 3, tile.columns, tile.columns + 4

    def products(x: Any, w: Any) -> tuple[Any, ...]:
        q, k, v = (x[..., part * heads * size : (part + 1) * heads * size] for part in range(3))
        q, k, v = (part.reshape((examples, length, heads, size)) for part in (q, k, v))
        scores = lnp.einsum("bqhd,bkhd->bhqk", q, k)
        out = lnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape((examples, length, heads * size))
        return scores, out, x[0, :, : heads * size] @ w

    assert_one_shader(products, numbers(examples, length, 3 * heads * size), numbers(heads * size, size))


def _step(x: Any, w: Any, b: Any, y: Any) -> Any:
    hidden = x @ w + b
    back = (y - hidden) @ w.T
    return hidden, lnp.where(x > 0.0, back, 0.0), w - 0.5 * (lnp.maximum(x, 0.0).T @ y)


def test_functions_of_operands_and_of_the_sum(tile: BroadcastTile) -> None:
    m, n = tile.rows + 12, tile.columns + 4
    arrays = numbers(m, 2 * tile.columns), numbers(2 * tile.columns, n), numbers(n), numbers(m, n)
    assert_agrees(lx.trace(_step)(*arrays), arrays, device=cpu_device())


def test_a_result_in_the_place_of_what_the_sum_meets(tile: BroadcastTile) -> None:
    """Elements that lie in two tiles, since the last one is moved back, are written once."""
    for extent in (tile.columns + 4, tile.columns + 3):
        x, w = numbers(8, extent), numbers(extent, extent)
        step = lx.compile(lambda w, x: w - x.T @ x, donate_argnums=0)
        np.testing.assert_array_equal(np.asarray(step(lx.device_put(w), x)), w - x.T @ x)


def test_numbers_that_are_none_stay_where_they_are(tile: BroadcastTile) -> None:
    """The rest of a sum is set to zero in both operands, and a function's other results are not added in."""
    left, right = numbers(33, 35), numbers(35, 34)
    left[3, 20], left[5, 34], right[34, 7] = np.inf, np.nan, np.inf
    graph = lx.trace(lambda a, b: (a @ b, lnp.maximum(a, 0.0) @ b))(left, right)
    found, relu = run(graph, [left, right], device=cpu_device())
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, left @ right)
        np.testing.assert_array_equal(relu, np.maximum(left, 0.0) @ right)
