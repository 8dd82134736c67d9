"""GPUs that preserve NaN round to bfloat16 in a few operations, to the same bits."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lavax.backends.vulkan.glsl.shader import suited
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import parse
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.run.execution import backend, backend_with, run

GRAPH = """
graph (x: f32[{length}]) {{
  %0 = cast(x) : bf16[{length}]
  return %0
}}
"""


def test_the_short_form_is_for_gpus_that_preserve_nan() -> None:
    shader: Shader = dispatch_of(GRAPH.format(length=64), GENERIC_GPU).shader
    assert "isnan(x)" in shader.source and "0x7f800000u" not in shader.source
    for profile in (CPU_DRIVER, replace(GENERIC_GPU, preserves_special_floats=False)):
        assert "isnan(x)" not in dispatch_of(GRAPH.format(length=64), profile).shader.source
    assert suited(shader, GENERIC_GPU).source.count("isnan(x)") == 1


def test_both_forms_round_to_the_same_bits() -> None:
    """Each upper half of a float32 with lower halves around a tie, NaN and denormal numbers among them."""
    if not backend().profile.preserves_special_floats:
        pytest.skip("the device preserves no NaN")
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = np.concatenate([upper | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    graph, numbers = parse(GRAPH.format(length=bits.size)), bits.view(np.float32)
    found = [
        np.asarray(rounded, np.float32).view(np.uint32) >> 16
        for device in (backend_with(kind="gpu"), backend())
        for rounded in run(graph, [numbers], device=device)
    ]
    assert np.array_equal(*found)
    nearest = (bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16
    nan = np.isnan(numbers)
    assert np.array_equal(found[0], np.where(nan, bits >> 16 | 0x40, nearest))
