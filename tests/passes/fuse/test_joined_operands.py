"""Arrays end to end are joined in memory before a product that reads them over and over, where tiles are staged."""
from __future__ import annotations

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
