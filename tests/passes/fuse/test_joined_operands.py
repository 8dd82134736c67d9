"""Arrays end to end are joined in memory before a product that reads them over and over, where tiles are staged."""
from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.ir import Graph, interpret
from lavax.passes.build import contraction_geometry
from lavax.passes.build.contraction_geometry import Copies
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Products, Target
from tests.passes.lowering import f32
from tests.passes.program_checks import check_program

STAGING = Target(Products(stages_operands=True))


def kernels_of(graph: Graph, target: Target, reads: int) -> KernelProgram:
    with patch.object(contraction_geometry, "_JOINED", Copies(reads, products=1)):
        program = schedule(prepare(graph, target), target=target)
    check_program(program)
    return program


def kinds(program: KernelProgram) -> list[str]:
    return [step.kernel.kind for step in program.steps]


def side_by_side(x: lx.Array, y: lx.Array, w: lx.Array) -> lx.Array:
    return lnp.concatenate([x, y], axis=1) @ w


def test_arrays_end_to_end_are_stored_for_products_that_read_them_often() -> None:
    arrays = f32(6, 4), f32(6, 5), f32(9, 8)
    graph = simplify(lx.trace(side_by_side)(*arrays))
    assert kinds(kernels_of(graph, STAGING, reads=8)) == ["map", "contract"]
    assert kinds(kernels_of(graph, STAGING, reads=9)) == ["contract"]
    assert kinds(kernels_of(graph, Target(), reads=8)) == ["contract"]
    (found,), (expected,) = (
        run(graph_or_program, *arrays)
        for run, graph_or_program in ((interpret_kernels, kernels_of(graph, STAGING, 8)), (interpret, graph))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_array_with_padding_is_read_where_it_is() -> None:
    graph = simplify(lx.trace(lambda x, w: lnp.pad(x, ((0, 0), (1, 2))) @ w)(f32(6, 4), f32(7, 8)))
    assert kinds(kernels_of(graph, STAGING, reads=1)) == ["contract"]


@pytest.mark.parametrize("side", [4, 6])
def test_what_is_stored_of_windows_is_what_they_repeat(side: int) -> None:
    arrays = f32(2, 3, side, side), f32(2, 2, side, side), f32(4, 5, 3, 3)
    graph = simplify(lx.trace(lambda x, y, w: nn.conv(lnp.concatenate([x, y], 1), w, padding="SAME"))(*arrays))
    program = kernels_of(graph, STAGING, reads=1)
    stored = [output for step in program.steps if step.kernel.kind == "map" for output in step.kernel.graph.outputs]
    assert stored and all(output.type.size <= 2 * 5 * (side + 2) ** 2 for output in stored)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("width, is_one", [(8, True), (7, False)])
def test_of_16_bits_they_are_stored_sooner_in_lines_of_whole_vectors(dtype: str, width: int, is_one: bool) -> None:
    kinds_of = [lx.ShapeDtype(shape, dtype) for shape in ((64, 8), (64, width), (8 + width, 16))]
    graph = simplify(lx.trace(side_by_side)(*kinds_of))
    with patch.object(contraction_geometry, "REORDERED_NARROW", Copies(16, 1)):
        program = kernels_of(graph, STAGING, reads=1 << 9)
    assert kinds(program) == (["map", "contract"] if is_one else ["contract"])
    generator = np.random.default_rng(1)
    arrays = [generator.integers(-8, 9, node.shape).astype(np.float32) for node in graph.inputs]
    np.testing.assert_array_equal(interpret_kernels(program, *arrays)[0], interpret(graph, *arrays)[0])


def of_heads(x: lx.Array, y: lx.Array, w: lx.Array) -> lx.Array:
    """Two arrays [h,t,d] whose heads stand side by side before they are joined."""
    joined = lnp.concatenate([lnp.transpose(each, (1, 0, 2)).reshape(64, -1) for each in (x, y)], 1)
    return joined @ w


def of_turned(x: lx.Array, y: lx.Array, w: lx.Array) -> lx.Array:
    """Two arrays whose columns are rows before they are joined."""
    return lnp.concatenate([x.T, y.T], 1) @ w


def of_later(x: lx.Array, y: lx.Array, w: lx.Array) -> lx.Array:
    """Two arrays without their first four columns."""
    return lnp.concatenate([x[:, 4:12], y[:, 4:12]], 1) @ w


def of_computed(x: lx.Array, y: lx.Array, w: lx.Array) -> lx.Array:
    return lnp.concatenate([x * 2, y], 1) @ w


@pytest.mark.parametrize(
    "function, shapes, is_one",
    [
        (side_by_side, ((64, 8), (64, 16), (24, 16)), False),
        (of_heads, ((2, 64, 8), (3, 64, 8), (40, 16)), False),
        (of_heads, ((2, 64, 4), (2, 64, 4), (16, 16)), True),  # half of a vector is of another head
        (side_by_side, ((64, 12), (64, 12), (24, 16)), True),  # a vector is of both
        (of_turned, ((8, 64), (8, 64), (16, 16)), True),  # no vectors in memory
        (of_later, ((64, 16), (64, 16), (16, 16)), True),  # each begins in the middle of a vector
        (of_computed, ((64, 8), (64, 8), (16, 16)), True),  # memory does not have all of it
    ],
)
def test_products_that_load_vectors_choose_among_arrays_that_have_whole_ones(
    function: Callable[..., lx.Array], shapes: tuple[tuple[int, ...], ...], is_one: bool
) -> None:
    graph = simplify(lx.trace(function)(*(lx.ShapeDtype(shape, "bfloat16") for shape in shapes)))
    target = Target(Products(stages_operands=True, line=lambda dot: 8))
    with patch.object(contraction_geometry, "REORDERED_NARROW", Copies(16, 1)):
        program = kernels_of(graph, target, reads=1 << 9)
    assert kinds(program) == (["map", "contract"] if is_one else ["contract"])
    generator = np.random.default_rng(1)
    arrays = [generator.integers(-8, 9, node.shape).astype(np.float32) for node in graph.inputs]
    np.testing.assert_array_equal(interpret_kernels(program, *arrays)[0], interpret(graph, *arrays)[0])


@pytest.mark.parametrize("dtype, is_one", [("bfloat16", True), ("float32", False)])
def test_what_is_gathered_is_stored_if_it_has_16_bits(dtype: str, is_one: bool) -> None:
    given = lx.ShapeDtype((100, 8), dtype), lx.ShapeDtype((64,), "int32"), lx.ShapeDtype((8, 16), dtype)
    graph = simplify(lx.trace(lambda table, places, w: table[places] @ w)(*given))
    with patch.object(contraction_geometry, "REORDERED_NARROW", Copies(16, 1)):
        program = kernels_of(graph, STAGING, reads=1 << 9)
    assert kinds(program) == (["map", "contract"] if is_one else ["contract"])
    generator = np.random.default_rng(2)
    arrays = [generator.integers(0, 9, node.shape).astype(node.dtype.numpy) for node in graph.inputs]
    np.testing.assert_array_equal(interpret_kernels(program, *arrays)[0], interpret(graph, *arrays)[0])
