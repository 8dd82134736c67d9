"""The operators of com.microsoft, against onnxruntime and, where that is not there, against formulas."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
from tests.lavax.onnx.building import model, node, run_reference

pytest.importorskip("onnx", reason="the package that reads ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(11)
DOMAIN = "com.microsoft"


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def compare(
    operator: str, inputs: dict[str, Any], outputs: int = 1, tolerance: float = 1e-5, **attributes: Any
) -> None:
    """One node in onnxruntime and in lavax. Integers that shapes follow from are constants of the model."""
    pytest.importorskip("onnxruntime", reason="compares with onnxruntime")
    given = {name: value for name, value in inputs.items() if value is not None}
    names = " ".join(name if inputs[name] is not None else "-" for name in inputs)
    fixed = {name: value for name, value in given.items() if name in ("total", "w8", "zero", "axis", "pads")}
    free = {name: value for name, value in given.items() if name not in fixed}
    made = [f"y{k}" for k in range(outputs)]
    integers, element = attributes.pop("integers", ()), attributes.pop("element", None)
    data = model(
        [node(operator, names, " ".join(made), domain=attributes.pop("domain", DOMAIN), **attributes)],
        {name: (value.dtype.str[1:], value.shape) for name, value in free.items()},
        {name: (element or ("i4" if name in integers else "f4"), None) for name in made},
        fixed,
        com_microsoft=1,
    )
    loaded = lx.onnx.load(data)
    found = loaded(loaded.parameters, **free)
    for name, wanted in zip(made, run_reference(data, free), strict=True):
        assert found[name].shape == wanted.shape
        np.testing.assert_allclose(np.asarray(found[name]), wanted, rtol=tolerance, atol=tolerance)


def test_activations() -> None:
    x, bias = normal(2, 3, 8), normal(8)
    compare("Gelu", {"x": x})
    compare("FastGelu", {"x": x, "b": bias}, tolerance=1e-4)
    compare("BiasGelu", {"x": x, "b": bias})
    compare("QuickGelu", {"x": x})


def test_products() -> None:
    compare("FusedMatMul", {"a": normal(2, 4, 3), "b": normal(2, 4, 5)}, transA=1, alpha=0.5)
    compare("FusedGemm", {"a": normal(4, 3), "b": normal(5, 3), "c": normal(5)}, transB=1, activation="Relu", alpha=2.0)
    compare("FusedConv", {"x": normal(1, 2, 5, 5), "w": normal(3, 2, 3, 3), "b": normal(3)}, activation="Relu",
            kernel_shape=[3, 3])  # fmt: skip


def test_normalisations() -> None:
    x, skip, g, b = normal(2, 3, 8), normal(2, 3, 8), normal(8), normal(8)
    compare("SkipLayerNormalization", {"x": x, "s": skip, "g": g, "b": b, "c": b}, epsilon=1e-5)
    compare("SkipSimplifiedLayerNormalization", {"x": x, "s": skip, "g": g}, epsilon=1e-5)
    compare("SimplifiedLayerNormalization", {"x": x, "g": g}, epsilon=1e-5, domain="")
    ids, kinds = RNG.integers(0, 9, (2, 4)).astype(np.int32), RNG.integers(0, 2, (2, 4)).astype(np.int32)
    embedded = {"i": ids, "k": kinds, "w": normal(9, 8), "p": normal(5, 8), "t": normal(2, 8), "g": g, "b": b}
    compare("EmbedLayerNormalization", embedded, 2, epsilon=1e-5, integers=("y1",))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zero", [False, True])
def test_weights_of_few_bits(bits: int, has_zero: bool) -> None:
    rows, columns, block = 6, 40, 16
    blocks = 3
    packed = RNG.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8)
    zero = RNG.integers(0, 256, rows * -(-blocks * bits // 8)).astype(np.uint8) if has_zero else None
    inputs = {"a": normal(2, 5, columns), "w8": packed, "s": normal(rows * blocks), "zero": zero}
    compare("MatMulNBits", inputs, K=columns, N=rows, bits=bits, block_size=block, tolerance=1e-4)


def test_columns_of_a_narrow_matrix_in_an_order_of_their_own() -> None:
    packed, scales = RNG.integers(0, 256, (3, 2, 8)).astype(np.uint8), normal(6)
    order = RNG.integers(0, 2, 32).astype(np.int32)
    inputs = {"a": normal(2, 32), "b": packed, "s": scales, "z": None, "order": order}
    compare("MatMulNBits", inputs, K=32, N=3, bits=4, block_size=16, tolerance=1e-4)


def test_attention_with_packed_projections() -> None:
    x, w, b = normal(2, 5, 8), normal(8, 24) / 3, normal(24)
    compare("Attention", {"x": x, "w": w, "b": b}, num_heads=2, tolerance=1e-4)
    compare("Attention", {"x": x, "w": w, "b": b}, num_heads=2, unidirectional=1, tolerance=1e-4)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    compare("Attention", {"x": x, "w": w, "b": b, "m": mask}, num_heads=2, tolerance=1e-4)
    past = normal(2, 2, 2, 3, 4)
    compare("Attention", {"x": x, "w": w, "b": b, "m": None, "p": past}, 2, num_heads=2, unidirectional=1,
            tolerance=1e-4)  # fmt: skip


def test_attention_of_several_heads() -> None:
    q, k, v = normal(2, 3, 8), normal(2, 5, 8), normal(2, 5, 8)
    compare("MultiHeadAttention", {"q": q, "k": k, "v": v}, num_heads=2, tolerance=1e-4)
    compare("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": normal(24)}, num_heads=2, tolerance=1e-4)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    more = {"b": None, "m": mask, "a": normal(1, 2, 3, 5)}
    compare("MultiHeadAttention", {"q": q, "k": k, "v": v, **more}, num_heads=2, tolerance=1e-4)
    past = {"b": None, "m": None, "a": None, "pk": normal(2, 2, 4, 4), "pv": normal(2, 2, 4, 4)}
    compare("MultiHeadAttention", {"q": q, "k": k[:, :3], "v": v[:, :3], **past}, 3, num_heads=2, tolerance=1e-4)


def test_rotary_positions() -> None:
    cos, sin = np.cos(normal(12, 4)), np.sin(normal(12, 4))
    for interleaved in (0, 1):
        for places in (np.array([3]), RNG.integers(0, 12, (2, 5))):
            compare("RotaryEmbedding", {"x": normal(2, 3, 5, 8), "p": places, "c": cos, "s": sin},
                    interleaved=interleaved)  # fmt: skip


@pytest.mark.parametrize("window", [-1, 3])
@pytest.mark.parametrize("rotary", [0, 1])
def test_attention_of_grouped_queries_with_a_cache(rotary: int, window: int) -> None:
    heads, groups, size = 4, 2, 16
    settings = dict(num_heads=heads, kv_num_heads=groups, do_rotary=rotary, local_window_size=window, tolerance=1e-4)
    angles = {"c": np.cos(normal(16, 8)), "s": np.sin(normal(16, 8))} if rotary else {}
    q, k, v = normal(2, 5, heads * size), normal(2, 5, groups * size), normal(2, 5, groups * size)
    first = {"q": q, "k": k, "v": v, "pk": None, "pv": None, "l": np.array([4, 4], np.int32),
             "total": np.array(5, np.int32)}  # fmt: skip
    compare("GroupQueryAttention", {**first, **angles}, 3, **settings)
    past = {"pk": normal(2, groups, 5, size), "pv": normal(2, groups, 5, size)}
    later = {"q": q[:, :1], "k": k[:, :1], "v": v[:, :1], **past, "l": np.array([5, 5], np.int32),
             "total": np.array(6, np.int32)}  # fmt: skip
    compare("GroupQueryAttention", {**later, **angles}, 3, **settings)
    packed = {"q": normal(2, 5, (heads + 2 * groups) * size), "k": None, "v": None}
    compare("GroupQueryAttention", {**first, **packed, **angles}, 3, **settings)


def test_quantised_operators() -> None:
    whole = RNG.integers(-99, 99, (4, 5)).astype(np.int8)
    inputs = {"a": normal(3, 4), "b": whole, "s": np.full(1, 0.02, np.float32)}
    compare("DynamicQuantizeMatMul", inputs, tolerance=1e-4)


def test_weights_of_four_bits_are_the_numbers_they_stand_for() -> None:
    """(q - 8) · scale, the lower half of a byte first."""
    packed = np.array([[[0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]]], np.uint8)
    data = model(
        [node("MatMulNBits", "a b s", "y", domain=DOMAIN, K=16, N=1, bits=4, block_size=16)],
        {"a": ("f4", [16, 16])}, {"y": ("f4", [16, 1])}, {"b": packed, "s": np.array([0.5], np.float32)},
        com_microsoft=1,
    )  # fmt: skip
    loaded = lx.onnx.load(data)
    assert list(loaded.parameters) == ["s"]
    found = np.asarray(loaded(loaded.parameters, a=np.eye(16, dtype=np.float32))["y"])
    np.testing.assert_allclose(found[:, 0], (np.arange(16) - 8) * 0.5)
