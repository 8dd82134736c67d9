"""Operators with unusual attributes and inputs, against onnxruntime."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.onnx.building import graph, model, node, run_reference

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(29)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def compare(
    nodes: list[Any], inputs: Mapping[str, np.ndarray], outputs: Mapping[str, str] | None = None,
    weights: Mapping[str, Any] | None = None, opset: int = 21, tolerance: float = 1e-5,
) -> None:  # fmt: skip
    """A model in onnxruntime and in lavax; `outputs` are element types by name."""
    described = {name: (value.dtype.str[1:], value.shape) for name, value in inputs.items()}
    data = model(nodes, described, {n: (t, None) for n, t in (outputs or {"y": "f4"}).items()}, weights, opset)
    loaded = lx.onnx.load(data)
    found = loaded(loaded.parameters, **inputs)
    for name, wanted in zip(loaded.output_names, run_reference(data, inputs), strict=True):
        assert found[name].shape == wanted.shape
        np.testing.assert_allclose(np.asarray(found[name]), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("start, end, step", [(-10, -100, -1), (-4, -5, -1), (1, -9, -3), (100, 0, -2)])
def test_slices_backwards_begin_within_the_axis(start: int, end: int, step: int) -> None:
    compare(
        [node("Slice", "x s e a p", "y")], {"x": normal(2, 4)},
        weights={"s": np.array([start]), "e": np.array([end]), "a": np.array([-1]), "p": np.array([step])},
    )  # fmt: skip


def test_sums_of_exponentials_of_integers_are_integers() -> None:
    compare([node("ReduceLogSumExp", "x", "y")], {"x": np.array([[1, 4, 2]], np.int32)}, {"y": "i4"}, opset=18)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax_of_old_opsets_chooses_among_all_axes_behind(axis: int) -> None:
    compare([node("Hardmax", "x", "y", axis=axis)], {"x": normal(2, 3, 4)}, opset=11)


def test_an_operator_that_a_later_opset_replaced() -> None:
    data = model(
        [node("GroupNormalization", "x s b", "y", num_groups=2)], {"x": ("f4", [1, 4, 3])}, {"y": ("f4", [1, 4, 3])},
        {"s": np.array([1, 2], "f"), "b": np.array([0, 1], "f")}, opset=18,
    )  # fmt: skip
    loaded, x = lx.onnx.load(data), normal(1, 4, 3)
    apart = x.reshape(2, 6)
    normed = (apart - apart.mean(1, keepdims=True)) / np.sqrt(apart.var(1, keepdims=True) + 1e-5)
    wanted = (normed * np.array([[1], [2]]) + np.array([[0], [1]])).reshape(x.shape)
    np.testing.assert_allclose(np.asarray(loaded({**loaded.parameters}, x=x)["y"]), wanted, rtol=1e-4, atol=1e-5)


def test_nearest_elements_where_places_lie_on_halves() -> None:
    for scales in ([1, 1, 0.6, 0.8], [1, 1, 0.5, 0.2]):
        for nearest in ("floor", "ceil", "round_prefer_floor"):
            for mode in ("half_pixel", "pytorch_half_pixel"):
                attributes = dict(coordinate_transformation_mode=mode, nearest_mode=nearest)
                compare(
                    [node("Resize", "x - s", "y", **attributes)], {"x": normal(1, 1, 4, 5)},
                    weights={"s": np.array(scales, "f")}, opset=19,
                )  # fmt: skip


@pytest.mark.parametrize("dtype", ["u1", "i1", "i4"])
def test_integers_between_pixels_lose_their_fraction(dtype: str) -> None:
    x = RNG.integers(0, 120, (1, 1, 4, 4)).astype(dtype)
    compare(
        [node("Resize", "x - s", "y", mode="linear")], {"x": x}, {"y": dtype},
        {"s": np.array([1, 1, 1.5, 0.5], "f")}, 19,
    )  # fmt: skip


def test_resize_of_opset_10_reads_up_where_it_shrinks() -> None:
    scales = {"s": np.array([1, 1, 0.6, 1.5], "f")}
    compare([node("Resize", "x s", "y")], {"x": normal(1, 2, 4, 5)}, weights=scales, opset=10)


def test_clip_bounds_the_gates_of_an_lstm_and_not_its_cell() -> None:
    weights = {"w": normal(1, 12, 2), "r": normal(1, 12, 3), "b": np.full((1, 24), 9, "f")}  # the cell grows to 0.75
    compare(
        [node("LSTM", "x w r b", "y", hidden_size=3, clip=0.5)], {"x": normal(5, 2, 2)}, weights=weights
    )


def test_a_loop_collects_until_known_numbers_say_stop() -> None:
    body = graph(
        [
            node("Add", "v a", "next"), node("ReduceSum", "next", "total", keepdims=0),
            node("Less", "total most", "goes"), node("Identity", "total", "row"),
        ],
        {"i": ("i8", []), "c": ("?", []), "v": ("f4", [3])},
        {"goes": ("?", []), "next": ("f4", [3]), "row": ("f4", [])}, {"most": np.float32(9)},
    )  # fmt: skip
    ones = np.ones(3, np.float32)
    compare(
        [node("Loop", "m c v", "y rows", body=body)], {"v": ones, "a": ones}, {"y": "f4", "rows": "f4"},
        {"m": np.array(10), "c": np.array(True)},
    )  # fmt: skip


_REGIONS = [
    [0, 0, 9, 7], [2, 3, 14, 15], [-3, -2, 30, 2], [-100, -50, 150, 99], [4, 4, 4, 4], [5, 5, 2, 2],
    [-40, -40, -30, -30], [3, 3, 3.2, 60],
]  # fmt: skip


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("place", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
def test_regions_are_pooled(mode: str, place: str, ratio: int) -> None:
    """Without a ratio a bin has as many samples as pixels, also where it is larger than the image."""
    attributes = dict(mode=mode, coordinate_transformation_mode=place, sampling_ratio=ratio, spatial_scale=0.5)
    compare(
        [node("RoiAlign", "x r b", "y", output_height=2, output_width=3, **attributes)],
        {"x": normal(2, 2, 8, 8), "r": np.array(_REGIONS, "f"), "b": np.array([0, 1, 1, 0, 0, 1, 1, 0])},
        opset=16,
    )  # fmt: skip


def test_the_gradient_of_regions_whose_samples_follow_from_their_size() -> None:
    data = model(
        [node("RoiAlign", "x r b", "y", output_height=2, output_width=2)],
        {"x": ("f4", [1, 1, 4, 4]), "r": ("f4", [1, 4]), "b": ("i8", [1])}, {"y": ("f4", None)}, opset=16,
    )  # fmt: skip
    loaded, x, w = lx.onnx.load(data), normal(1, 1, 4, 4), normal(1, 1, 2, 2)
    given = {"r": np.array([[0.5, 0.5, 3.5, 2.5]], "f"), "b": np.array([0])}

    def loss(x: Any) -> Any:
        return 3 * lnp.sum(w * loaded({}, x=x, **given)["y"])

    found = np.asarray(lx.grad(loss)(lnp.asarray(x)))
    wanted = [float(loss(x + e.reshape(x.shape)) - loss(x - e.reshape(x.shape))) / 2 for e in np.eye(16, dtype="f")]
    np.testing.assert_allclose(found.reshape(-1), wanted, rtol=1e-4, atol=1e-5)  # it is linear in x


def test_the_maximum_of_regions() -> None:
    regions = np.array([[k % 2, *region] for k, region in enumerate(_REGIONS)], "f")
    compare(
        [node("MaxRoiPool", "x r", "y", pooled_shape=[2, 3], spatial_scale=0.5)],
        {"x": normal(2, 2, 8, 8), "r": regions},
    )  # fmt: skip


@pytest.mark.parametrize("batch, size", [(1, [1, 4, 5, 3]), (2, [2, 3, 2, 4]), (1, [1, 2, 3, 4, 2])])
@pytest.mark.parametrize("corners", [0, 1])
def test_grids_of_affine_maps(batch: int, size: list[int], corners: int) -> None:
    theta = normal(batch, len(size) - 2, len(size) - 1)
    sizes = {"s": np.array(size)}
    compare([node("AffineGrid", "t s", "y", align_corners=corners)], {"t": theta}, weights=sizes, opset=20)


def test_a_signal_of_real_numbers_may_be_of_rank_2() -> None:
    weights = {"s": np.array(4), "w": np.hanning(8).astype("f"), "l": np.array(8)}
    compare([node("STFT", "x s w l", "y")], {"x": normal(1, 32)}, weights=weights, opset=17, tolerance=1e-4)


def test_a_number_is_written_where_a_mask_says_so() -> None:
    """As exporters spell it, with places whose count depends on data; and with a gradient."""
    nodes = [
        node("Greater", "x zero", "m"), node("NonZero", "m", "places"),
        node("Transpose", "places", "rows", perm=[1, 0]), node("Shape", "rows", "shape"),
        node("Slice", "shape first second", "wide"), node("Expand", "number wide", "all"),
        node("ScatterND", "x rows all", "y"),
    ]  # fmt: skip
    weights = {"zero": np.float32(0), "number": np.array([7], "f"), "first": np.array([0]), "second": np.array([1])}
    x = normal(3, 4)
    compare(nodes, {"x": x}, weights=weights)
    loaded = lx.onnx.load(model(nodes, {"x": ("f4", [3, 4])}, {"y": ("f4", None)}, weights))
    w = normal(3, 4)
    found = lx.grad(lambda x: 3 * lnp.sum(w * loaded(loaded.parameters, x=x)["y"]))(lnp.asarray(x))
    np.testing.assert_allclose(np.asarray(found), np.where(x > 0, 0, 3 * w), rtol=1e-6)
