"""Operands that a product's workgroups read ahead: each line of 64 bytes once, by one of those that need it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.contract import ahead
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.span import Span
from lavax.backends.vulkan.emit.contract.tiles import cooperative_tile, fits
from lavax.backends.vulkan.glsl.narrow_vectors import EIGHT
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, MatrixShape
from lavax.ir.parser import parse
from lavax.ir.types import DTYPES
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.kernels.index import Index, constant, substitute
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.emit.matrix_emulation import emulated
from tests.backends.vulkan.run.execution import assert_agrees, backend, backend_with
from tests.sweeps import all_pairs


def value_of(index: Index) -> int:
    found = substitute(index, {"lane": constant(0)})
    assert found.low == found.high
    return found.low


def product(m: int, k: int, n: int, form: str = "plain") -> str:
    left, right = (f"{m},{k}", f"{k},{n}") if form == "plain" else (f"{k},{m}", f"{n},{k}")
    axes = "[1]x[0]" if form == "plain" else "[0]x[1]"
    return f"""
graph (x: bf16[{left}], w: bf16[{right}]) {{
  %0 = dot(x, w) contract={axes} : bf16[{m},{n}]
  return %0
}}
"""


def read_by_all(m: int, k: int, n: int, form: str, side: int, rows: int, columns: int) -> list[tuple[int, int]]:
    """The places along the free axis and along the sum that all workgroups of a product read, in their order."""
    dot = parse(product(m, k, n, form)).nodes[0]
    contraction: Any = SimpleNamespace(dot=dot, sizes=sizes_of(dot))
    found = []
    for down in range(-(-m // rows)):
        for across in range(-(-n // columns)):
            spans = Span(m, rows, constant(down), EIGHT), Span(n, columns, constant(across), EIGHT)
            count, place = ahead._lines(contraction, spans, side)
            for number in range(count):
                free, step = place(constant(number))[0]
                found.append((value_of(free), value_of(step)))
    return found


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("form", ["plain", "transposed"])
@pytest.mark.parametrize("sizes", [(128, 128, 192), (96, 256, 64), (200, 96, 104)])
def test_the_workgroups_together_read_both_operands(sizes: tuple[int, int, int], form: str, side: int) -> None:
    m, k, n = sizes
    found = read_by_all(m, k, n, form, side, 64, 64)
    extent = n if side else m
    if (form == "plain") == (side == 0):  # lines along the sum
        assert {(row, step) for row in range(extent) for step in range(0, k, 32)} <= set(found)
    else:
        lines = {(step, free // 32) for free, step in found}
        assert {(step, part) for step in range(k) for part in range(extent // 32)} <= lines
    assert all(0 <= free < extent and 0 <= step < k for free, step in found)
    if m % 64 == n % 64 == 0:
        assert len(found) <= 1.5 * len(set(found))  # and hardly any line twice


def test_what_is_needed_first_is_read_first() -> None:
    steps = [step for _, step in read_by_all(64, 1024, 64, "plain", 0, 64, 64)]
    assert steps == sorted(steps)


# Two operands, and whether both are transposed.
OPERANDS = [(((128, 128), (128, 192)), False), (((96, 128), (72, 96)), True), (((2, 72, 64), (2, 64, 104)), False)]
# A tile, and the size of its matrices.
TILES = [
    ((64, 64, 64, 2, 2), 16),
    ((32, 48, 64, 2, 2, 2), 8),  # 64 x 96 in slices of half the steps, at half its size
]


@all_pairs(operands=OPERANDS, of=TILES, held=[True, False])
def test_products_that_read_ahead_are_right(
    operands: tuple[tuple[tuple[int, ...], ...], bool],
    of: tuple[tuple[int, ...], int],
    held: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Operands in 16 bits are read ahead, and those that are rounded on their way are not. On any device."""
    (shapes, swapped), (form, size) = operands, of
    matrices = (MatrixShape("bf16", size, size, size),)
    tile = cooperative_tile(form, "bf16", replace(backend().profile, matrices=matrices))
    device, lanes = backend_with(kind="gpu", matrices=matrices), backend().profile.subgroup_size
    if not fits(tile, device.profile):
        pytest.skip("less shared memory than the tile takes")
    sources = []

    def compiled(source: str) -> bytes:
        sources.append(source)
        return compile_glsl(emulated(source, lanes))

    monkeypatch.setattr(pipelines, "compile_glsl", compiled)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: replace(tile, reads_ahead=True))
    dtype, random = DTYPES["bf16" if held else "f32"], np.random.default_rng(0)
    arrays = tuple(dtype.rounded(random.standard_normal(shape, np.float32)) for shape in shapes)

    def multiplied(x: Any, w: Any) -> Any:
        return x.T @ w.T if swapped else x @ w

    kinds = (lx.ShapeDtype(shape, dtype.user) for shape in shapes)
    graph = remove_stop_gradient(lx.trace(lx.matmul_precision("bfloat16")(multiplied))(*kinds))
    assert_agrees(graph, arrays, device=device)
    assert any("gl_NumWorkGroups.z == 0u" in source for source in sources) == held


def test_a_shader_for_every_shape_reads_none_ahead() -> None:
    """How many numbers an invocation reads depends on the sizes, which another shape's eager program changes."""
    matrices = (MatrixShape("bf16", 16, 16, 16),)
    profile = replace(GENERIC_GPU, matrices=matrices, float16=True, storage_16bit=True, memory_model=True)
    texts = [product(256, 256, 256), product(192, 256, 320)]
    compiled = [dispatch_of(text, profile).shader.source for text in texts]
    eager = [dispatch_of(text, profile, eager=True).shader.source for text in texts]
    assert all("gl_NumWorkGroups.z == 0u" in source for source in compiled) and compiled[0] != compiled[1]
    assert eager[0] == eager[1]
