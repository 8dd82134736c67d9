"""What a product's epilogue would gather is stored before it, on devices where tiles wait for each place."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.passes.lowering import f32
from tests.passes.program_checks import check_program

IDS = np.arange(64, dtype=np.int32) * 7 % 50


def centred(x: Any) -> Any:
    return x - lnp.mean(x, axis=-1, keepdims=True)


def embedded(ids: Any, table: Any, weights: Any) -> Any:
    """A residual stream that begins with embeddings."""
    x = table[ids]
    return x + centred(x) @ weights


def ranked(ids: Any, table: Any, weights: Any) -> Any:
    """Places that are found while the product's operand is, so that nothing could store what is there before it."""
    places = lnp.argsort(table[:, 0])
    return centred(table) @ weights + table[places]


def scaled(ids: Any, table: Any, weights: Any) -> Any:
    """A number for each row, which many elements share."""
    return centred(table) @ weights * table[:, 0][ids][:, None]


@pytest.mark.parametrize(
    ("function", "profile", "is_stored"),
    [
        (embedded, GENERIC_GPU, True),
        (embedded, CPU_DRIVER, False),
        (ranked, GENERIC_GPU, False),
        (scaled, GENERIC_GPU, False),
    ],
)
def test_tiles_do_not_gather(function: Any, profile: DeviceProfile, is_stored: bool) -> None:
    arrays, target = (IDS, f32(64, 32), f32(32, 32)), target_of(profile, 1 << 34, 1 << 32)
    graph = prepare(simplify(lx.trace(function)(*arrays)), target)
    assert (Reason.PLACES in fuse(graph, target).storing.values()) == is_stored
    program = schedule(graph, target=target)
    check_program(program)
    gathering = [
        step.kernel.kind for step in program.steps if any(node.op == "gather" for node in step.kernel.graph.nodes)
    ]
    assert gathering and not (is_stored and "contract" in gathering)
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
