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


# What a gate of channels gets: sums over the pixels of each image, whose channels are neighbours in memory.
PIXELS = """
graph (x: f32[16,56,56,144], y: f32[16,144,56,56]) {
  %0 = transpose(x) axes=[0,3,1,2] : f32[16,144,56,56]
  %1 = exp(%0) : f32[16,144,56,56]
  %2 = sum(%1) axes=[2,3] : f32[16,144]
  return %2
}
"""


def test_columns_between_other_axes_are_reduced_side_by_side() -> None:
    graph = prepared(PIXELS, GENERIC_GPU)
    assert str(graph).strip() == dedent(
        """
        graph (x: f32[16,56,56,144], y: f32[16,144,56,56]) {
          %0 = transpose(x) axes=[0,3,1,2] : f32[16,144,56,56]
          %1 = exp(%0) : f32[16,144,56,56]
          %2 = transpose(%1) axes=[0,2,3,1] : f32[16,56,56,144]
          %3 = reshape(%2) : f32[16,3136,144]
          %4 = reshape(%3) : f32[16,14,224,144]
          %5 = sum(%4) axes=[2] : f32[16,14,144]
          %6 = sum(%5) axes=[1] : f32[16,144]
          return %6
        }
        """
    ).strip()


@pytest.mark.parametrize(
    ("shape", "order", "axes"),
    [
        ((3, 50, 53, 7), (0, 3, 1, 2), (2, 3)),  # 2,650 pixels, of which no part of 256 is a divisor
        ((4, 61, 6, 50, 5), (0, 2, 4, 1, 3), (3, 4)),
        ((5, 60, 6, 50, 4), (2, 4, 0, 1, 3), (3, 4)),
        ((7, 2100, 5), (1, 2, 0), (0,)),
    ],
    ids=str,
)
def test_columns_in_parts_have_the_values_of_the_whole(
    shape: tuple[int, ...], order: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    moved = tuple(shape[axis] for axis in order)
    left = tuple(extent for axis, extent in enumerate(moved) if axis not in axes)
    text = f"""
    graph (x: f32[{','.join(map(str, shape))}]) {{
      %0 = transpose(x) axes=[{','.join(map(str, order))}] : f32[{','.join(map(str, moved))}]
      %1 = sum(%0) axes=[{','.join(map(str, axes))}] : f32[{','.join(map(str, left))}]
      return %1
    }}
    """
    graph = prepared(text, GENERIC_GPU)
    assert sum(node.op == "sum" for node in graph.nodes) == 2
    x = rng.normal(size=shape)
    np.testing.assert_allclose(interpret(graph, x)[0], x.transpose(order).sum(axes), rtol=1e-9, atol=1e-9)


def test_a_gradient_of_weights_of_one_channel_is_a_sum_of_columns() -> None:
    """Its windows lie along other axes than the channels, which are neighbours in memory."""
    graph = parse(
        dedent("""
        graph (x: f32[4,32,32,16], g: f32[4,1,32,32]) {
          %0 = broadcast(x) axes=[0,1,2,3] : f32[4,32,32,16,32,32]
          %1 = shear(%0) axes=[1,2] along=[4,5] stride=[1,1] dilation=[1,1] : f32[4,1,1,16,32,32]
          %2 = transpose(%1) axes=[1,2,3,0,4,5] : f32[1,1,16,4,32,32]
          %3 = reshape(g) : f32[4,32,32]
          %4 = broadcast(%3) axes=[3,4,5] : f32[1,1,16,4,32,32]
          %5 = multiply(%2, %4) : f32[1,1,16,4,32,32]
          %6 = sum(%5) axes=[3,4,5] : f32[1,1,16]
          return %6
        }
        """)
    )
    found = prepare(graph, target_of(GENERIC_GPU, 1 << 34, 1 << 32))
    assert [node.shape for node in found.nodes if node.op == "sum"] == [(16, 16), (16,)]
    arrays = rng.normal(size=(4, 32, 32, 16)), rng.normal(size=(4, 1, 32, 32))
    np.testing.assert_allclose(interpret(found, *arrays)[0], interpret(graph, *arrays)[0], rtol=1e-9)


@pytest.mark.parametrize(
    "middle",
    [
        "%0 = broadcast(s) axes=[] : f32[512,8]\n  %1 = transpose(%0) axes=[1,0] : f32[8,512]",
        "%0 = broadcast(v) axes=[0] : f32[512,8]\n  %1 = transpose(%0) axes=[1,0] : f32[8,512]",
        "%0 = broadcast(s) axes=[] : f32[8,520,9]\n"
        "  %2 = shear(%0) axes=[1] along=[2] stride=[1] dilation=[1] : f32[8,512,9]\n"
        "  %3 = slice(%2) start=[0,0,0] limit=[8,512,1] stride=[1,1,1] : f32[8,512,1]\n"
        "  %1 = reshape(%3) : f32[8,512]",
    ],
    ids=["a repeated number", "a repeated vector", "windows of a repeated number"],
)
def test_sums_of_what_is_repeated(middle: str) -> None:
    graph = parse(
        f"graph (s: f32[], v: f32[512]) {{\n  {middle}\n  %4 = exp(%1) : f32[8,512]\n"
        "  %5 = sum(%4) axes=[1] : f32[8]\n  return %5\n}"
    )
    arrays = rng.normal(size=()), rng.normal(size=512)
    found = prepare(graph, target_of(GENERIC_GPU, 1 << 34, 1 << 32))
    np.testing.assert_allclose(interpret(found, *arrays)[0], interpret(graph, *arrays)[0], rtol=1e-9)


# Groups of channels as a grouped convolution writes them: the channels of a group are neighbours in memory.
GROUPS = """
graph (x: bf16[8,4,40,30,2]) {
  %0 = transpose(x) axes=[1,0,4,2,3] : bf16[4,8,2,40,30]
  %1 = reshape(%0) : bf16[4,16,40,30]
  %2 = cast(%1) : f32[4,16,40,30]
  %3 = multiply(%2, %2) : f32[4,16,40,30]
  SUM
}
"""
OVER_PIXELS = "%4 = sum(%3) axes=[0,2,3] : f32[16]\n  return %4"
TURNED = (
    "%4 = transpose(%3) axes=[0,2,3,1] : f32[4,40,30,16]\n  %5 = sum(%4) axes=[0,1,2] : f32[16]\n  return %5"
)


@pytest.mark.parametrize("ending", [OVER_PIXELS, TURNED])
def test_channels_of_groups_are_columns(ending: str) -> None:
    """Through a reshape that joins groups and channels, and through what is computed before a transposition."""
    text = GROUPS.replace("SUM", ending)
    graph = prepared(text, GENERIC_GPU)
    sums = [node for node in graph.nodes if node.op == "sum"]
    assert [node.attrs["axes"] for node in sums] == [(1,), (0,)]
    parts, channels = sums[0].shape
    assert channels == 16
    assert parts > 8
    x = rng.integers(-3, 4, (8, 4, 40, 30, 2)).astype(np.float32)
    np.testing.assert_array_equal(interpret(graph, x)[0], interpret(parse(dedent(text)), x)[0])
