"""Products by cooperative matrices have the numbers of the interpreter: on devices, and with emulated matrices."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.tiles import (
    COOPERATIVE_TILES,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.plan.profile import MatrixShape
from lavax.ir.types import DTYPES
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.matrix_emulation import emulated
from tests.backends.vulkan.run.execution import assert_agrees, backend, backend_with
from tests.sweeps import each_value

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, np.float32)


def assert_right(function: Callable[..., Any], *arrays: np.ndarray, kind: str) -> None:
    assert_agrees(remove_stop_gradient(lx.trace(function)(*arrays)), arrays, device=backend_with(kind=kind))


PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "plain": (lambda x, w: x @ w, (64, 64), (64, 64)),
    "transposed": (lambda x, w: x.T @ w.T, (64, 48), (40, 64)),
    "of odd extents": (lambda x, w: x @ w, (61, 67), (67, 59)),
    "batched": (lambda x, w: x @ w, (3, 40, 24), (3, 24, 56)),
    "with what is computed around it": (lambda x, w: lnp.tanh((x * 2) @ -w / 8), (40, 32), (32, 48)),
    "with arrays in the epilogue": (lambda x, w: (x @ w) * x.T + w, (64, 64), (64, 64)),
    "with a vector": (lambda x, w: x @ w, (300, 300), (300,)),
    "of padded windows": (
        lambda x, w: nn.conv(x, w, 1, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (1, 5, 6, 16),
        (3, 3, 16, 24),
    ),
    "of strided windows": (
        lambda x, w: nn.conv_transpose(x, w, 2, dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (1, 5, 6, 16),
        (3, 3, 16, 24),
    ),
}


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_every_device_computes_the_same(name: str, precision: str, kind: str) -> None:
    """With matrices where it has them, and else without: operands rounded, sums in float32."""
    function, left, right = PRODUCTS[name]
    assert_right(lx.matmul_precision(precision)(function), numbers(*left), numbers(*right), kind=kind)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_operands_give_wide_sums(dtype: str) -> None:
    held = DTYPES[dtype]
    x, w = (held.rounded(numbers(64, 64)) for _ in range(2))
    for kind in ("cpu", "gpu"):
        graph = lx.trace(lambda x, w: x @ w)(*(lx.ShapeDtype((64, 64), held.user),) * 2)
        assert_agrees(graph, (x, w), device=backend_with(kind=kind), ulps=1)


@each_value(
    name=[
        "transposed",
        "of odd extents",
        "with what is computed around it",
        "with arrays in the epilogue",
        "of padded windows",
        "of strided windows",
    ],
    numbers_of_tile=[
        (16, 16, 16, 2, 1),
        (16, 8, 32, 1, 1),
        (32, 16, 32, 2, 1, 2),
        (16, 8, 32, 1, 1, 4),
        (32, 24, 16, 4, 1),  # lines of three vectors
        (16, 96, 16, 2, 4),
        (16, 48, 16, 1, 1),  # twelve matrices of a subgroup
        (64, 32, 32, 2, 2, 2),
    ],
)
def test_tiles_of_emulated_matrices_are_right(
    name: str, numbers_of_tile: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On any device. Operands are rounded on their way, or copied."""
    profile = replace(backend().profile, kind="gpu", matrices=(MatrixShape("bf16", 8, 8, 8),))
    tile = cooperative_tile(numbers_of_tile, "bf16", profile)
    lanes = backend().profile.subgroup_size
    monkeypatch.setattr(pipelines, "compile_glsl", lambda source: compile_glsl(emulated(source, lanes)))
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    function, left, right = PRODUCTS[name]
    device = backend_with(kind="gpu", matrices=profile.matrices)
    kinds = (lx.ShapeDtype(shape, "float32") for shape in (left, right))
    graph = remove_stop_gradient(lx.trace(lx.matmul_precision("bfloat16")(function))(*kinds))
    assert_agrees(graph, (numbers(*left), numbers(*right)), device=device)


LARGE_TILES = [(64, 96, 64, 2, 2), (64, 64, 64, 2, 2), (32, 32, 128, 2, 2, 2)]

LARGE_PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = {
    "several tiles": (lambda x, w: x @ w, (128, 128), (128, 192)),
    "transposed": (lambda x, w: x.T @ w.T, (128, 72), (104, 128)),
    "first transposed": (lambda x, w: x.T @ w, (96, 64), (96, 96)),
    "second transposed": (lambda x, w: x @ w.T, (64, 96), (96, 96)),
    "of odd extents": (lambda x, w: x @ w, (67, 131), (131, 101)),
    "of odd extents, transposed": (lambda x, w: x.T @ w.T, (77, 65), (97, 77)),
    "batched": (lambda x, w: x @ w, (2, 70, 72), (2, 72, 100)),
    "with what is computed around it": (lambda x, w: lnp.tanh((x * 2) @ -w / 8), (64, 72), (72, 96)),
    "with arrays in the epilogue": (lambda x, w: (x @ w) * x.T + w, (100, 100), (100, 100)),
    "with a row and a column around it": (lambda x, w: nn.gelu(x @ w + w[0]) * x[:, :1], (65, 64), (64, 97)),
    "of 16 bits": (lambda x, w: (x @ w).astype(lnp.bfloat16), (65, 64), (64, 100)),
}


# What the others have, some of these have as well, or small tiles of the same kernel.
SOME_LARGE_PRODUCTS = [
    "several tiles",
    "first transposed",
    "second transposed",
    "of odd extents, transposed",
    "batched",
    "with a row and a column around it",
    "of 16 bits",
]


@pytest.mark.long
@pytest.mark.parametrize("numbers_of_tile", LARGE_TILES)
@pytest.mark.parametrize("name", [name for name in LARGE_PRODUCTS if name not in SOME_LARGE_PRODUCTS])
def test_large_tiles_of_emulated_matrices_are_right_in_other_products(
    name: str, numbers_of_tile: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_large_tile_is_right(name, numbers_of_tile, monkeypatch)


@each_value(name=SOME_LARGE_PRODUCTS, numbers_of_tile=LARGE_TILES)
def test_large_tiles_of_emulated_matrices_are_right(
    name: str, numbers_of_tile: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiles that training runs on GPUs, of matrices as theirs: six of a subgroup, four, or one of half the sum."""
    assert_large_tile_is_right(name, numbers_of_tile, monkeypatch)


def assert_large_tile_is_right(name: str, numbers_of_tile: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers_of_tile in COOPERATIVE_TILES
    matrices = (MatrixShape("bf16", 16, 16, 16),)
    tile = cooperative_tile(numbers_of_tile, "bf16", replace(backend().profile, matrices=matrices))
    device, lanes = backend_with(kind="gpu", matrices=matrices), backend().profile.subgroup_size
    if not fits(tile, device.profile):
        pytest.skip("less shared memory than the tile takes")
    monkeypatch.setattr(pipelines, "compile_glsl", lambda source: compile_glsl(emulated(source, lanes)))
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    function, left, right = LARGE_PRODUCTS[name]
    kinds = (lx.ShapeDtype(shape, "float32") for shape in (left, right))
    graph = remove_stop_gradient(lx.trace(lx.matmul_precision("bfloat16")(function))(*kinds))
    assert_agrees(graph, (numbers(*left), numbers(*right)), device=device)


@pytest.mark.parametrize("name", ["of padded windows", "of strided windows"])
def test_windows_of_16_bits_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = replace(backend().profile, kind="gpu", matrices=(MatrixShape("bf16", 8, 8, 8),))
    tile = cooperative_tile((16, 8, 16, 2, 1), "bf16", profile)
    lanes = backend().profile.subgroup_size
    monkeypatch.setattr(pipelines, "compile_glsl", lambda source: compile_glsl(emulated(source, lanes)))
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    function, left, right = PRODUCTS[name]
    held = DTYPES["bf16"]
    graph = remove_stop_gradient(lx.trace(function)(*(lx.ShapeDtype(shape, held.user) for shape in (left, right))))
    device = backend_with(kind="gpu", matrices=profile.matrices)
    assert_agrees(graph, tuple(held.rounded(numbers(*shape)) for shape in (left, right)), device=device, ulps=1)


@pytest.mark.parametrize("parts", [(32, 32, 16, 2, 2), (64, 32, 32, 4, 1), (32, 64, 64, 1, 2), (32, 32, 64, 2, 2, 2)])
def test_tiles_of_matrices_are_right(parts: tuple[int, ...]) -> None:
    """Where the device and the shader compiler have matrices."""
    profile = backend().profile
    if not profile.matrices:
        pytest.skip("no cooperative matrices here")
    tile = cooperative_tile(parts, profile.matrices[0].dtype, profile)
    if not (tile.divides() and fits(tile, profile)):
        pytest.skip("no matrices of this size here")
    precision = {"f16": "float16", "bf16": "bfloat16"}[tile.shape.dtype]
    with patch.object(contract, "choose_schedule", lambda *_: tile):
        for name, (function, left, right) in PRODUCTS.items():
            if name != "with a vector":
                assert_right(lx.matmul_precision(precision)(function), numbers(*left), numbers(*right), kind="gpu")
