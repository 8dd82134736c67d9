"""The schedule that is shown of a step is the one that its shader was written by."""
from __future__ import annotations

from typing import Any

import lavax as lx
from lavax.backends.vulkan.emit.candidates import schedules_of
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.passes.kernels.commands import steps_of
from tests.backends.vulkan.emit.test_same_texts import ForGpu


def _products(xs: list[Any], ws: list[Any]) -> list[Any]:
    return [x @ w for x, w in zip(xs, ws, strict=True)]


def test_tiles_of_long_sums_are_those_of_their_dispatch() -> None:
    """Six products together keep the device busy with larger tiles than one does."""
    kinds = [[lx.ShapeDtype(shape, "float32")] * 6 for shape in ((64, 1024), (1024, 256))]
    lowered = ForGpu().lower(lx.trace(_products)(*kinds))
    (step,) = steps_of(lowered.kernels.steps)
    assert len(step.kernels) == 6
    shown, alone = lowered.schedule_of(step), schedules_of(step.kernel, GENERIC_GPU)[0]
    assert shown != alone, "else this test says nothing"
    texts = [
        [dispatch.shader.source for dispatch in emit_program(lowered.kernels, GENERIC_GPU, False, choice).dispatches]
        for choice in (lambda kernel: None, lambda kernel: shown, lambda kernel: alone)
    ]
    assert texts[0] == texts[1] != texts[2]
