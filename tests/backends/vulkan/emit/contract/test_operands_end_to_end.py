"""Operands of products by matrices that are several arrays end to end: whole vectors are copied from the one that has
them, also where heads lie apart, and numbers are the interpreter's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.tiles import cooperative_tile, fits
from lavax.backends.vulkan.plan.profile import MatrixShape
from lavax.ir.types import DTYPES
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.matrix_emulation import emulated
from tests.backends.vulkan.run.execution import assert_agrees, backend, backend_with

BATCH, HEADS, TOKENS, HEAD = 2, 2, 40, 16
WIDTH = 3 * HEADS * HEAD


def side_by_side(*heads: Any) -> Any:
    """Three arrays [b,h,t,d] as [b·t,3·h·d], joined after heads of a token stand side by side."""
    parts = [lnp.transpose(each, (0, 2, 1, 3)).reshape(BATCH, TOKENS, -1) for each in heads]
    return lnp.concatenate(parts, -1).reshape(BATCH * TOKENS, -1)


def in_turn(*heads: Any) -> Any:
    """The same, joined along an axis of their own."""
    return lnp.stack([lnp.transpose(each, (0, 2, 1, 3)) for each in heads], 2).reshape(BATCH * TOKENS, -1)


def uneven(*heads: Any) -> Any:
    """Without the first columns of the first: four are left of a vector."""
    return side_by_side(*heads)[:, 12:]


def columns(each: Any) -> Any:
    return each.reshape(BATCH * TOKENS, -1)


def between(*heads: Any) -> Any:
    """Whole vectors end to end that begin in the middle of vectors in memory."""
    return lnp.concatenate([columns(each)[:, 4:28] for each in heads], -1)


def between_twice(*heads: Any) -> Any:
    """Vectors of the whole are vectors in memory, of which the first array has a half and the next one the other."""
    return between(*heads)[:, 4:-4]


def across(*heads: Any) -> Any:
    """Vectors in memory again, with the end of the first array in the middle of one."""
    first, second, third = map(columns, heads)
    return lnp.concatenate([first[:, :12], second[:, 4:], third], -1)


def in_halves(*heads: Any) -> Any:
    """The same, where each half of a vector is a row of what is joined."""
    first, second, third = (each.reshape(BATCH * TOKENS, -1, 4) for each in heads)
    return columns(lnp.concatenate([first[:, :3], second[:, 1:], third], 1))


def repeated(*heads: Any) -> Any:
    """Every eighth element eight times: no neighbours in memory."""
    shape = BATCH * TOKENS, 4, 8
    parts = [columns(lnp.broadcast_to(columns(each)[:, ::8, None], shape)) for each in heads]
    return lnp.concatenate(parts, -1)


def emitted(
    function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], reads_ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> str:
    """What the product's shader does, whose numbers are the interpreter's."""
    matrices = (MatrixShape("bf16", 8, 8, 8),)
    tile = cooperative_tile((32, 32, 32, 2, 2), "bf16", replace(backend().profile, matrices=matrices))
    device, lanes = backend_with(kind="gpu", matrices=matrices), backend().profile.subgroup_size
    if not fits(tile, device.profile):
        pytest.skip("less shared memory than the tile takes")
    sources = []

    def compiled(source: str) -> bytes:
        sources.append(source)
        return compile_glsl(emulated(source, lanes))

    monkeypatch.setattr(pipelines, "compile_glsl", compiled)
    monkeypatch.setattr(contract, "choose_schedule", lambda *_: replace(tile, reads_ahead=reads_ahead))
    random, dtype = np.random.default_rng(0), DTYPES["bf16"]
    arrays = tuple(dtype.rounded(random.standard_normal(shape, np.float32)) for shape in shapes)
    graph = remove_stop_gradient(lx.trace(function)(*(lx.ShapeDtype(shape, dtype.user) for shape in shapes)))
    assert_agrees(graph, arrays, device=device, ulps=1)
    (source,) = (source for source in sources if "coopMatMulAdd" in source)
    return source[source.index("void main()") :]


def copies_vectors(main: str) -> bool:
    return "either(" in main and "lx_bf16_from_bits" not in main


# Products of columns end to end that are along the sum, and others, each of operands that are read ahead, and not.
SIDE, TURN, UNEVEN = (side_by_side, WIDTH, True), (in_turn, WIDTH, True), (uneven, WIDTH - 12, False)


@pytest.mark.parametrize(
    ("joined", "wanted", "copied", "reads_ahead", "along_sum"),
    [
        (*SIDE, True, True),
        (*SIDE, False, False),
        (*TURN, True, False),
        (*TURN, False, True),
        (*UNEVEN, True, True),
        (*UNEVEN, False, False),
        *(pytest.param(*TURN, ahead, ahead, marks=pytest.mark.long) for ahead in (True, False)),
        *(
            pytest.param(*joined, ahead, not ahead, marks=pytest.mark.long)
            for joined in (SIDE, UNEVEN)
            for ahead in (True, False)
        ),
        *(
            (joined, wanted, False, False, along_sum)
            for joined, wanted in (
                (between, WIDTH - 24),
                (between_twice, WIDTH - 32),
                (across, WIDTH - 24),
                (in_halves, WIDTH - 24),
                (repeated, WIDTH),
            )
            for along_sum in (True, False)
        ),
    ],
)
def test_vectors_come_from_the_array_that_has_them(
    joined: Callable[..., Any],
    wanted: int,
    copied: bool,
    reads_ahead: bool,
    along_sum: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def multiplied(*arrays: Any) -> Any:
        *heads, other = arrays
        return joined(*heads) @ other if along_sum else joined(*heads).T @ other

    shapes = (*((BATCH, HEADS, TOKENS, HEAD),) * 3, (wanted if along_sum else BATCH * TOKENS, 48))
    assert copies_vectors(emitted(multiplied, shapes, reads_ahead, monkeypatch)) == copied


@pytest.mark.parametrize(("width", "copied"), [(16, True), (12, False)])
def test_rows_of_a_loop_have_vectors_only_where_each_begins_with_one(
    width: int, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drivers for CPUs read vectors from anywhere, so numbers alone do not tell."""

    def scanned(first: Any, second: Any, other: Any) -> Any:
        def turn(count: Any, rows: Any) -> Any:
            return count, lnp.concatenate([lnp.broadcast_to(row[:, :8], (40, 8)) for row in rows], -1) @ other

        return lx.lax.scan(turn, lnp.float32(0), (first, second))[1]

    shapes = ((5, 1, width), (5, 1, width), (16, 48))
    assert copies_vectors(emitted(scanned, shapes, False, monkeypatch)) == copied
