"""Contractions on the device by the schedules of both kinds of device: a GPU's run on a CPU driver as well, slowly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.choose import choose_parts, choose_schedule
from lavax.backends.vulkan.emit.contract.tiles import (
    NARROW_TILES,
    SHARED_TILES,
    BroadcastTile,
    ContractSchedule,
    RegisterTile,
    SharedTile,
    SubgroupTile,
    broadcast_tile,
)
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.ir import interpret
from lavax.passes.simplify import remove_stop_gradient, simplify
from tests.backends.vulkan.run.execution import assert_agrees, backend, backend_with, run_as_gpu
from tests.sweeps import each_value

RANDOM = np.random.default_rng(0)
KINDS = ("cpu", "gpu")


def numbers(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums of products float32 has exactly."""
    return RANDOM.integers(-3, 4, shape).astype(np.float32)


def assert_right(function: Callable[..., Any], *arrays: np.ndarray, kind: str = "gpu") -> None:
    assert_agrees(remove_stop_gradient(lx.trace(function)(*arrays)), arrays, device=backend_with(kind=kind))


def product(left: Any, right: Any, transposed: str) -> Any:
    return (left.T if "a" in transposed else left) @ (right.T if "b" in transposed else right)


def operands(m: int, k: int, n: int, transposed: str) -> tuple[np.ndarray, np.ndarray]:
    return numbers(*((k, m) if "a" in transposed else (m, k))), numbers(*((n, k) if "b" in transposed else (k, n)))


SCHEDULES: dict[str, ContractSchedule] = {
    # Half as deep as they are: a driver for a processor takes many seconds to compile the loop of a large tile.
    **{
        f"{tile.rows}x{tile.columns}": replace(tile, depth=8)
        for tile in (*SHARED_TILES, *NARROW_TILES)
        if tile.slices == 1
    },
    "one buffer": SharedTile(32, 32, 16, 4, 4, 1),
    "fewer vectors than invocations": SharedTile(8, 64, 8, 4, 4),
    "four slices": SharedTile(32, 32, 16, 4, 4, 1, slices=4),
    "two slices, interleaved": SharedTile(32, 64, 8, 8, 4, 2, interleaved=True, slices=2),
    "invocations without results": SharedTile(16, 16, 32, 4, 4, 1, slices=8),
}


@each_value(name=list(SCHEDULES), transposed=["", "a", "b", "ab"])
def test_shared_tiles(name: str, transposed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that tiles divide, that end in part of a vector, and that are smaller than a tile or its depth."""
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: SCHEDULES[name])
    for m, k, n in [(1, 1, 1), (7, 33, 65), (129, 33, 130), (128, 64, 128), (20, 36, 44)]:
        left, right = operands(m, k, n, transposed)
        assert_right(lambda a, b: product(a, b, transposed), left, right)  # called at once


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(1, 512, 300), (2, 513, 301), (300, 512, 1), (5, 1024, 64), (64, 2048, 33)], ids=str)
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_few_rows_and_long_sums(sizes: tuple[int, int, int], transposed: str, kind: str) -> None:
    left, right = operands(*sizes, transposed)
    assert_right(lambda a, b: product(a, b, transposed), left, right, kind=kind)


@pytest.mark.parametrize("tile", [RegisterTile(4, 8), SubgroupTile(4, 2, 8), SubgroupTile(1, 8, 8)], ids=str)
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_tiles_of_invocations_and_subgroups(
    tile: ContractSchedule, transposed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes = backend().profile.subgroup_size
    chosen = replace(tile, lanes=lanes) if isinstance(tile, SubgroupTile) else tile
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: chosen)
    for m, k, n in [(4, 64, 8), (9, 33, 11)]:
        assert_right(lambda a, b: product(a, b, transposed), *operands(m, k, n, transposed))


@pytest.mark.parametrize("rows, vectors", [(4, 2), (12, 1)])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_broadcast_tiles(rows: int, vectors: int, transposed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows than lanes, and more that they do not divide; sizes that neither four nor the tile divides."""
    tile = broadcast_tile((rows, vectors), backend().profile.subgroup_size)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    for m, k, n in [(20, 36, 44), (9, 33, 70), (33, 8, 64), (20, 5, 10)]:
        assert_right(lambda a, b: product(a, b, transposed), *operands(m, k, n, transposed), kind="cpu")


@pytest.mark.parametrize("columns, vectors", [(4, 2), (12, 1)])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_turned_tiles(columns: int, vectors: int, transposed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of results whose neighbours are columns, and of those whose neighbours are rows."""
    lanes = backend().profile.subgroup_size
    tile = BroadcastTile(4 * vectors * lanes, columns, lanes, turned=True)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    for m, k, n in [(44, 36, 20), (70, 33, 9), (64, 8, 3), (10, 5, 26)]:
        arrays = operands(m, k, n, transposed)
        assert_right(lambda a, b: product(a, b, transposed), *arrays, kind="cpu")
        assert_right(lambda a, b: lnp.tanh(product(a, b, transposed).T + 1), *arrays, kind="cpu")


@pytest.mark.parametrize("function", [lnp.float16, lnp.bfloat16, lnp.int32], ids=lambda dtype: dtype.name)
def test_broadcast_tiles_of_other_types(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tile = broadcast_tile((8, 1), backend().profile.subgroup_size)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    arrays = operands(3 * 20, 12, 37, "")
    assert_right(lambda a, b: a.astype(function).reshape(3, 20, 12) @ b.astype(function), *arrays, kind="cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_are_given_when_it_runs(kind: str) -> None:
    for m, k, n in [(66, 36, 68), (33, 35, 37), (3, 512, 70)]:
        arrays = operands(m, k, n, "b")
        assert_agrees(lx.trace(lambda a, b: a @ b.T)(*arrays), arrays, eager=True, device=backend_with(kind=kind))


@pytest.mark.parametrize("transposed", ["", "b"])
def test_a_matrix_and_a_vector_are_one_kernel_on_a_gpu(transposed: str) -> None:
    """A sum over rows or columns that are read once, in batches and with an epilogue too."""
    matrices, vectors, bias = numbers(2, 600, 520), numbers(2, 600), numbers(2, 520)
    if transposed:
        matrices = np.ascontiguousarray(matrices.swapaxes(1, 2))

    def function(matrices: Any, vectors: Any, bias: Any) -> Any:
        right = matrices.swapaxes(1, 2) if transposed else matrices
        return nn.relu((vectors[:, None, :] @ right)[:, 0, :] + bias)

    graph = lx.compile(function).lower(matrices, vectors, bias).optimized
    arrays = {"matrices": matrices, "vectors": vectors, "bias": bias}
    given = [arrays[node.name] for node in graph.inputs]
    assert len(backend_with(kind="gpu").lower(graph).plan.dispatches) == 1
    (found,) = run_as_gpu(graph, given)
    right = matrices.swapaxes(1, 2) if transposed else matrices
    np.testing.assert_array_equal(found, np.maximum(np.einsum("bk,bkn->bn", vectors, right) + bias, 0))


def _residual(x: Any, w: Any, b: Any) -> Any:
    return lnp.maximum(lnp.abs(x) @ w + b, 0.0) + x[:, :1]


def _attention_scores(q: Any, k: Any) -> Any:
    return lnp.einsum("bqhd,bkhd->bhqk", q * 2.0, k)


def _gathered(table: Any, rows: Any, w: Any) -> Any:
    return table[rows] @ w


def _convolution(x: Any, w: Any) -> Any:
    return nn.conv(x, w, 1, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _strided_convolution(x: Any, w: Any) -> Any:
    return nn.conv(x, w, 2, "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))


FUSED: dict[Callable[..., Any], tuple[np.ndarray, ...]] = {
    _residual: (numbers(65, 40), numbers(40, 33), numbers(33)),
    _attention_scores: (numbers(2, 33, 3, 20), numbers(2, 40, 3, 20)),
    _gathered: (numbers(7, 40), RANDOM.integers(0, 7, 50).astype(np.int32), numbers(40, 36)),
    _convolution: (numbers(2, 6, 7, 17), numbers(3, 3, 17, 33)),
    _strided_convolution: (numbers(2, 5, 13, 11), numbers(18, 5, 3, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUSED, ids=lambda function: function.__name__.strip("_"))
def test_prologues_epilogues_and_windows(function: Callable[..., Any], kind: str) -> None:
    assert_right(function, *FUSED[function], kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [_residual, _convolution], ids=lambda function: function.__name__.strip("_"))
def test_gradients(function: Callable[..., Any], kind: str) -> None:
    arrays = FUSED[function]
    weights = numbers(*interpret(lx.trace(function)(*arrays), *arrays)[0].shape)
    loss = lx.grad(lambda weights, *given: 3.0 * lnp.sum(weights * function(*given)), argnums=(1, 2))
    assert_right(loss, weights, *arrays, kind=kind)


@pytest.mark.parametrize(("rows", "columns"), [((4, 16), 36), ((3, 15), 19)])
def test_results_whose_neighbours_are_rows(rows: tuple[int, int], columns: int) -> None:
    """Written four rows of a column at a time, with another array that lies like them."""
    x, w, bias = numbers(prod(rows), 24), numbers(24, columns), numbers(rows[0], columns, rows[1])

    def turned(x: Any, w: Any, bias: Any) -> Any:
        return lnp.transpose((x @ w).reshape(*rows, columns), (0, 2, 1)) + bias

    (found,) = run_as_gpu(simplify(lx.trace(turned)(x, w, bias)), [x, w, bias])
    np.testing.assert_array_equal(found, (x @ w).reshape(*rows, columns).transpose(0, 2, 1) + bias)


def test_numbers_that_are_none_stay_where_they_are() -> None:
    """Parts of a sum that overlap are masked in both operands: an infinity must not meet a zero that was put in."""
    left, right = numbers(33, 35), numbers(35, 34)
    left[3, 20], left[5, 2], right[30, 7] = np.inf, np.nan, np.inf
    graph = lx.trace(lambda a, b: a @ b)(left, right)
    (found,) = run_as_gpu(graph, [left, right])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, left @ right)


@pytest.mark.parametrize("dtype", [np.int32, np.float16], ids=lambda dtype: dtype.__name__)
def test_other_dtypes(dtype: Any) -> None:
    left, right = (a.astype(dtype) for a in operands(33, 40, 36, ""))
    assert_right(lambda a, b: a @ b, left, right)


def test_small_products_stay_whole_on_a_gpu() -> None:
    """Their parts would cost a dispatch, and eager products a shader for every number of parts."""
    small, large = [(6, 200, 6), (1, 100, 64)], [(64, 4096, 64), (1, 4096, 4096), (4, 5000, 12)]
    for m, k, n in small + large:
        whole = (m, k, n) in small
        graph = lx.trace(lambda a, b: a @ b)(lx.ShapeDtype((m, k), "float32"), lx.ShapeDtype((k, n), "float32"))
        assert (choose_parts(graph.nodes[-1], GENERIC_GPU) == 1) is whole


def test_tiles_of_subgroups_are_powers_of_two() -> None:
    tiles = set()
    for m in range(1, 9):
        left, right = lx.ShapeDtype((m, 512), "float32"), lx.ShapeDtype((40_000, 512), "float32")
        graph = lx.trace(lambda a, b: lnp.einsum("mk,nk->mn", a, b))(left, right)
        (dot,) = [node for node in graph.nodes if node.op == "dot"]
        tile = choose_schedule(dot, GENERIC_GPU)
        assert isinstance(tile, SubgroupTile)
        tiles.add(tile.rows)
    assert max(tiles) > 2 and tiles <= {1, 2, 4, 8}
