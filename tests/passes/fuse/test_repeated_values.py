"""Small costly values that are repeated: stored if they would be computed very often, by one kernel or by many."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import rematerialization
from lavax.passes.schedule.rematerialization import RematerializationLimits
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.passes.lowering import f32
from tests.passes.program_checks import check_program


def turned(x: Any, angles: Any, weights: Any, layers: int) -> Any:
    """Layers that each turn pairs of numbers by the same angles, as rotary embeddings do."""
    for _ in range(layers):
        left, right = lnp.split(x @ weights, 2, axis=-1)
        x = lnp.concatenate([left * lnp.cos(angles) - right * lnp.sin(angles), left + right], axis=-1)
    return x


@pytest.mark.parametrize("layers, is_stored", [(1, False), (8, True)])
def test_what_many_kernels_repeat_is_stored(layers: int, is_stored: bool) -> None:
    # 80 x 32 angles, for 4 examples: 12 operations per element are few for one kernel, and many for those of 8 layers.
    arrays = f32(4, 80, 64), f32(80, 32), f32(64, 64)
    graph = prepare(simplify(lx.trace(lambda *a: turned(*a, layers))(*arrays)))
    reasons = fuse(graph).storing
    assert (Reason.REPEATED in reasons.values()) == is_stored, reasons
    program = schedule(graph)
    check_program(program)
    kernels = [step.kernel for step in program.steps]
    assert sum(any(node.op == "cos" for node in kernel.graph.nodes) for kernel in kernels) == 1
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_what_is_repeated_stays_over_the_peak_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the rows of each layer could compute it again: it is small, and they would for each example."""

    def layers(x: Any, angles: Any, weights: Any) -> Any:
        for _ in range(8):
            x = nn.softmax(turned(x, angles, weights, 1))
        return x

    monkeypatch.setattr(rematerialization, "_LIMITS", replace(RematerializationLimits(), least_peak=0))
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    arrays = f32(4, 512, 64), f32(512, 32), f32(64, 64)
    graph = prepare(simplify(lx.trace(layers)(*arrays)), target)
    program = schedule(graph, target=target)
    check_program(program)
    computing = [step for step in program.steps if any(node.op == "cos" for node in step.kernel.graph.nodes)]
    assert len(computing) == 1
    for found, expected in zip(interpret_kernels(program, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "powers, rows, profile, is_stored",
    [
        *((12, 512, CPU_DRIVER, True), (12, 4, CPU_DRIVER, False), (1, 512, CPU_DRIVER, False)),
        (12, 512, GENERIC_GPU, False),
    ],
)
def test_costly_places_that_many_rows_are_gathered_from_are_stored(
    powers: int, rows: int, profile: DeviceProfile, is_stored: bool
) -> None:
    def gathered(x: Any) -> Any:
        places = lnp.arange(x.shape[1])
        for _ in range(powers):
            places = (places * 3 + 1) % 257
        return x[:, places]

    array, target = f32(rows, 257), target_of(profile, 1 << 34, 1 << 32)
    graph = prepare(simplify(lx.trace(gathered)(array)), target)
    reasons = fuse(graph, target).storing
    assert (Reason.REPEATED in reasons.values()) == is_stored, reasons
    program = schedule(graph, target=target)
    check_program(program)
    (found,) = interpret_kernels(program, array)
    np.testing.assert_array_equal(found, interpret(graph, array)[0])
