"""Operators of com.microsoft on arrays and on quantised numbers, against onnxruntime or, without a kernel, NumPy."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lavax as lx
from tests.lavax.onnx.building import model, node, run_reference
from tests.lavax.onnx.test_microsoft import DOMAIN, RNG, compare, normal

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")


def scalar(value: float) -> np.ndarray:
    return np.asarray(value, np.float32)


def bytes_of(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def run(operator: str, inputs: dict[str, np.ndarray], **attributes: Any) -> np.ndarray:
    """One node in lavax, for operators that onnxruntime has no kernel of on a CPU."""
    described = {name: (value.dtype.str[1:], value.shape) for name, value in inputs.items()}
    nodes = [node(operator, " ".join(inputs), "y", domain=DOMAIN, **attributes)]
    loaded = lx.onnx.load(model(nodes, described, {"y": ("f4", None)}, com_microsoft=1))
    return np.asarray(loaded(loaded.parameters, **inputs)["y"])


def test_arrays() -> None:
    x = normal(3, 4)
    compare("CDist", {"a": x, "b": normal(5, 4)}, metric="euclidean")
    compare("ExpandDims", {"a": x, "axis": np.array(-2, np.int32)})
    compare("Pad", {"a": x, "pads": np.array([1, 0, 2, 1])}, mode="reflect")
    compare("Trilu", {"a": normal(2, 4, 4)}, upper=0)
    assert np.array_equal(run("BiasAdd", {"x": x, "b": x[0], "s": x}), x + x[0] + x)


def test_pools_with_channels_last() -> None:
    compare("NhwcMaxPool", {"a": bytes_of(1, 6, 5, 3)}, kernel_shape=[3, 2], strides=[2, 1], element="u1")


def test_spectra() -> None:
    x = normal(2, 3, 8)
    made = run("Rfft", {"x": x}, signal_ndim=1, normalized=0, onesided=1)
    wanted = np.fft.rfft(x)
    np.testing.assert_allclose(made, np.stack([wanted.real, wanted.imag], -1), atol=1e-5)
    back = run("Irfft", {"x": made}, signal_ndim=1, normalized=0, onesided=1)
    np.testing.assert_allclose(back, x, atol=1e-5)


def test_groups_of_channels_behind_a_skip() -> None:
    x, skip, gamma, beta = normal(2, 3, 3, 8), normal(2, 8), normal(8), normal(8)
    made = run("SkipGroupNorm", {"x": x, "g": gamma, "b": beta, "s": skip}, groups=2, activation=1)
    total = (x + skip[:, None, None]).reshape(2, 9, 2, 4)
    centre = total - total.mean((1, 3), keepdims=True)
    normed = (centre / np.sqrt((centre**2).mean((1, 3), keepdims=True) + 1e-5)).reshape(x.shape) * gamma + beta
    np.testing.assert_allclose(made, normed / (1 + np.exp(-normed)), rtol=1e-4, atol=1e-5)


def test_arrays_by_the_names_of_the_standard() -> None:
    compare("GatherND", {"x": normal(3, 4), "i": np.array([[0, 1], [2, 2]])})
    compare("GridSample", {"x": normal(1, 2, 4, 4), "g": normal(1, 3, 3, 2)})
    compare("UnfoldTensor", {"x": normal(2, 6, 3)}, dim=1, size=3, step=2)
    compare("TransposeMatMul", {"a": normal(2, 3, 4), "b": normal(2, 5, 4)}, transB=1, alpha=0.5)
    short = [RNG.integers(-999, 999, shape).astype(np.int16) for shape in ((2, 5), (5, 3))]
    compare("MatMulInteger16", {"a": short[0], "b": short[1]}, element="i4")


def test_known_numbers_by_the_names_of_the_standard() -> None:
    weights = {"first": np.float32(1), "limit": np.float32(7), "x": np.array([3, 1, 3, 2], np.float32)}
    nodes = [
        node("Range", "first limit", "y", domain=DOMAIN),
        node("Unique", "x", "values places counts", domain=DOMAIN),
    ]
    outputs = {"y": ("f4", None), "values": ("f4", None), "places": ("i8", None), "counts": ("i8", None)}
    data = model(nodes, {}, outputs, weights, com_microsoft=1)
    loaded = lx.onnx.load(data)
    found = loaded(loaded.parameters)
    for name, wanted in zip(outputs, run_reference(data, {}), strict=True):
        assert np.asarray(found[name]).tolist() == wanted.tolist()


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_a_quantised_lstm(per_column: bool, direction: str) -> None:
    """As dynamic quantisation writes it."""
    count = 2 if direction == "bidirectional" else 1
    shape = (count, 16) if per_column else (count,)
    inputs: dict[str, Any] = {"x": normal(3, 2, 5)}
    for name, rows in (("w", 5), ("r", 4)):
        inputs[name] = RNG.integers(-100, 100, (count, rows, 16)).astype(np.int8)
    inputs |= {"b": normal(count, 32), "lengths": None, "h": None, "c": None, "p": None}
    for name in "wr":
        inputs[f"{name}s"] = RNG.uniform(0.005, 0.01, shape).astype(np.float32)
        inputs[f"{name}z"] = np.zeros(shape, np.int8)
    compare("DynamicQuantizeLSTM", inputs, 3, hidden_size=4, direction=direction, tolerance=1e-4)


@pytest.mark.parametrize("is_quantised", [False, True])
def test_products_of_quantised_numbers(is_quantised: bool) -> None:
    zero, weights = np.array(7, np.uint8), RNG.integers(-99, 99, (5, 4)).astype(np.int8)
    inputs = {
        "a": bytes_of(3, 4), "as": scalar(0.02), "az": zero, "b": weights, "bs": scalar(0.03),
        "bz": np.array(3, np.int8), "c": RNG.integers(-500, 500, 5).astype(np.int32),
    }  # fmt: skip
    ends = {"ys": scalar(0.3), "yz": np.array(120, np.uint8)} if is_quantised else {}
    compare("QGemm", {**inputs, **ends}, transB=1, element="u1" if is_quantised else "f4")


def test_pools_and_choices_of_quantised_numbers() -> None:
    ends = {"xs": scalar(0.1), "xz": np.array(9, np.uint8), "ys": scalar(0.07), "yz": np.array(2, np.uint8)}
    compare("QLinearAveragePool", {"x": bytes_of(1, 2, 6, 6), **ends}, kernel_shape=[2, 3], element="u1")
    compare("QLinearAveragePool", {"x": bytes_of(1, 6, 6, 2), **ends}, kernel_shape=[2, 3], channels_last=1,
            pads=[1, 1, 0, 0], element="u1")  # fmt: skip
    sides = {
        "x": bytes_of(3, 4), "xs": scalar(0.1), "xz": np.array(9, np.uint8), "y": bytes_of(3, 4), "ys": scalar(0.2),
        "yz": np.array(1, np.uint8), "zs": scalar(0.15), "zz": np.array(5, np.uint8),
    }  # fmt: skip
    compare("QLinearWhere", {"c": RNG.uniform(size=(3, 4)) > 0.5, **sides}, element="u1")


@pytest.mark.parametrize("has_zero", [False, True])
def test_rows_of_a_table_in_blocks(has_zero: bool) -> None:
    table = RNG.integers(-8, 8, (6, 40)).astype(ml_dtypes.int4)
    zero = RNG.integers(-8, 8, (6, 3)).astype(ml_dtypes.int4) if has_zero else None
    inputs = {"w8": table, "i": RNG.integers(0, 6, (2, 3)), "s": normal(6, 3), "zero": zero}
    compare("GatherBlockQuantized", inputs, block_size=16, gather_axis=0, quantize_axis=1)


def test_attention_with_quantised_projections() -> None:
    x, w = bytes_of(2, 5, 8), RNG.integers(-99, 99, (8, 24)).astype(np.int8)
    inputs = {"x": x, "w": w, "b": normal(24), "xs": scalar(0.01), "ws": scalar(0.01), "m": None,
              "xz": np.array(128, np.uint8), "wz": np.array(0, np.int8)}  # fmt: skip
    compare("QAttention", inputs, num_heads=2, tolerance=1e-4)
    compare("QAttention", inputs, num_heads=2, unidirectional=1, tolerance=1e-4)
