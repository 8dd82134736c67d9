"""Reductions of columns that lie so in memory only."""
from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret, parse
from lavax.passes.prepare.pipeline import prepare

rng = np.random.default_rng(7)


def prepared(text: str, profile: DeviceProfile) -> Any:
    return prepare(parse(dedent(text)), target_of(profile, 1 << 34, 1 << 32))


# The channels of a convolution's result: neighbours in memory, and the second axis of what is read.
CHANNELS = """
graph (x: f32[2,40,30,8], m: f32[8]) {
  %0 = transpose(x) axes=[0,3,1,2] : f32[2,8,40,30]
  %1 = broadcast(m) axes=[1] : f32[2,8,40,30]
  %2 = subtract(%0, %1) : f32[2,8,40,30]
  %3 = multiply(%2, %2) : f32[2,8,40,30]
  %4 = sum(%3) axes=[0,2,3] : f32[8]
  return %4
}
"""


def test_a_gpu_reduces_few_columns_in_parts() -> None:
    graph = prepared(CHANNELS, GENERIC_GPU)
    assert str(graph).strip() == dedent(
        """
        graph (x: f32[2,40,30,8], m: f32[8]) {
          %0 = transpose(x) axes=[0,3,1,2] : f32[2,8,40,30]
          %1 = broadcast(m) axes=[1] : f32[2,8,40,30]
          %2 = subtract(%0, %1) : f32[2,8,40,30]
          %3 = multiply(%2, %2) : f32[2,8,40,30]
          %4 = transpose(%3) axes=[0,2,3,1] : f32[2,40,30,8]
          %5 = reshape(%4) : f32[2400,8]
          %6 = reshape(%5) : f32[10,240,8]
          %7 = sum(%6) axes=[1] : f32[10,8]
          %8 = sum(%7) axes=[0] : f32[8]
          return %8
        }
        """
    ).strip()
    x, m = rng.normal(size=(2, 40, 30, 8)), rng.normal(size=8)
    np.testing.assert_allclose(interpret(graph, x, m)[0], ((x - m) ** 2).sum((0, 1, 2)), rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        (CHANNELS, CPU_DRIVER),
        (CHANNELS.replace("40,30", "20,30"), GENERIC_GPU),  # short columns
        (CHANNELS.replace("[0,3,1,2]", "[0,1,2,3]").replace("2,40,30,8", "2,8,40,30"), GENERIC_GPU),  # rows in memory
    ],
    ids=["a CPU driver", "short", "rows"],
)
def test_other_reductions_stay_whole(text: str, profile: DeviceProfile) -> None:
    assert sum(node.op == "sum" for node in prepared(text, profile).nodes) == 1


# A vector times a weight whose rows are neighbours in memory: they look like columns once they are transposed.
WEIGHT = """
graph (w: f32[64,2400], x: f32[2400], y: f32[2400,64]) {
  %0 = transpose(w) axes=[1,0] : f32[2400,64]
  %1 = broadcast(x) axes=[0] : f32[2400,64]
  %2 = multiply(%0, %1) : f32[2400,64]
  %3 = sum(%2) axes=[0] : f32[64]
  return %3
}
"""


def test_rows_of_a_weight_stay_whole_and_its_columns_do_not() -> None:
    assert sum(node.op == "sum" for node in prepared(WEIGHT, GENERIC_GPU).nodes) == 1
    columns = WEIGHT.replace("%2 = multiply(%0, %1)", "%2 = multiply(y, %1)").replace("  %0 = tran", "  %9 = tran")
    assert sum(node.op == "sum" for node in prepared(columns, GENERIC_GPU).nodes) == 2
