"""Tiles of wide products that are taken in bands."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.bands import band_of
from lavax.backends.vulkan.emit.contract.tiles import SharedTile, cooperative_tile
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, MatrixShape
from lavax.passes.build.contraction_geometry import Sizes
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.matrix_emulation import emulated
from tests.backends.vulkan.run.execution import assert_agrees, backend, backend_with

TILE = SharedTile(128, 128, 16, 8, 8, 1)


def sizes(m: int, n: int) -> Sizes:
    return Sizes((), (m,), (n,), (64,))


@pytest.mark.parametrize(
    ("m", "n", "band"),
    [
        (8192, 49152, 16),  # 256 tiles at once: 16 rows and 16 columns, not one row of 256
        (8192, 4096, 1),  # eight rows and 32 columns at once are few enough
        (49152, 512, 1),
        (1024, 49152, 8),  # all rows
        (128, 49152, 1),  # one row of tiles has one order
    ],
)
def test_bands_are_of_rows_longer_than_what_runs_at_once(m: int, n: int, band: int) -> None:
    assert band_of(TILE, sizes(m, n), replace(GENERIC_GPU, told_processors=128)) == band


@pytest.mark.parametrize("shapes", [((310, 16), (16, 1000)), ((512, 16), (16, 1024)), ((2, 330, 16), (2, 16, 900))])
def test_products_in_bands_are_right(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Bands of four rows of tiles, of which there are five, seven, and as many in each matrix of a batch."""
    device = backend_with(kind="gpu", told_processors=8)
    graph = remove_stop_gradient(
        lx.trace(lambda x, w: x @ w)(*(lx.ShapeDtype(shape, "float32") for shape in shapes))
    )
    random = np.random.default_rng(0)
    assert_agrees(graph, [random.standard_normal(shape, np.float32) for shape in shapes], device=device)


def test_matrices_in_bands_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulated on any device: six rows of 25 tiles, in bands of four."""
    matrices = (MatrixShape("bf16", 8, 8, 8),)
    tile = cooperative_tile((16, 16, 16, 2, 1), "bf16", replace(backend().profile, matrices=matrices))
    sources: list[str] = []

    def compiled(source: str) -> bytes:
        sources.append(source)
        return compile_glsl(emulated(source, backend().profile.subgroup_size))

    monkeypatch.setattr(pipelines, "compile_glsl", compiled)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: tile)
    device = backend_with(kind="gpu", told_processors=8, matrices=matrices)
    kinds = (lx.ShapeDtype((90, 40), "bfloat16"), lx.ShapeDtype((40, 396), "bfloat16"))
    graph = remove_stop_gradient(lx.trace(lambda x, w: x @ w)(*kinds))
    random = np.random.default_rng(0)
    arrays = [node.dtype.rounded(random.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    assert_agrees(graph, arrays, device=device, ulps=1)
    assert any("coopmat" in source and "above" in source for source in sources)
