"""Matrices of integers: the error of rounding, one kernel for a product, layers."""
from __future__ import annotations

import re

import numpy as np
import pytest

import lavax as lx
from lavax.nn.modules import quantized
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.quantized import QuantizedEmbedding, QuantizedLinear, QuantizedMatrix

every_kind = pytest.mark.parametrize(("kind", "largest"), [("int8", 127), ("int4", 7)])


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@every_kind
@pytest.mark.parametrize(("columns", "group"), [(96, 32), (50, 64), (70, 32)])
@pytest.mark.usefixtures("reference_backend")
def test_rounding_moves_an_element_by_half_a_scale_at_most(kind: str, largest: int, columns: int, group: int) -> None:
    matrix = draw(24, columns)
    matrix[3] = 0
    found = QuantizedMatrix.of(matrix, kind, group)
    rounded = np.asarray(found.dequantized())
    assert rounded.shape == found.shape == matrix.shape
    for start in range(0, columns, group):
        part = matrix[:, start : start + group]
        scale = np.abs(part).max(axis=1, keepdims=True) / largest
        assert np.all(np.abs(rounded[:, start : start + group] - part) <= 0.5001 * scale)
    at = np.abs(matrix[0]).argmax()
    assert rounded[0, at] == pytest.approx(matrix[0, at], rel=1e-6)


@every_kind
@pytest.mark.usefixtures("reference_backend")
def test_zeros_serve_groups_that_are_not_around_zero(kind: str, largest: int) -> None:
    matrix = draw(6, 70) + 5
    matrix[2] = 3.25
    found = QuantizedMatrix.of(matrix, kind, 32, symmetric=False)
    rounded = np.asarray(found.dequantized())
    assert np.array_equal(rounded[2], matrix[2])
    for start in range(0, 70, 32):
        part = matrix[:, start : start + 32]
        scale = np.ptp(part, axis=1, keepdims=True) / (2 * largest + 1)
        assert np.all(np.abs(rounded[:, start : start + 32] - part) <= 0.501 * scale + 1e-6)
    assert np.array_equal(found.rows(np.array([4, 1])), rounded[[4, 1]])


@pytest.mark.usefixtures("reference_backend")
def test_several_matrices_are_rounded_as_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in slabs, so that the host needs little memory."""
    matrices = draw(3, 5, 40)
    monkeypatch.setattr(quantized, "_AT_ONCE", 80)
    found = QuantizedMatrix.of(matrices, "int4", 16)
    assert found.shape == (3, 5, 40)
    each = [QuantizedMatrix.of(matrix, "int4", 16).dequantized() for matrix in matrices]
    assert np.array_equal(found.dequantized(), np.stack(each))
    assert np.array_equal(found.at(np.array([2, 0])).dequantized(), np.stack([each[2], each[0]]))
    x = draw(4, 40, seed=1)
    np.testing.assert_allclose(
        found.contracted("nc,erc->enr", x), np.einsum("nc,erc->enr", x, np.stack(each)), atol=1e-4
    )
    with pytest.raises(ValueError, match="'nc,erc->enc' must sum over the last axis of both"):
        found.contracted("nc,erc->enc", x)


@every_kind
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_product_is_that_of_the_rounded_matrix(kind: str, largest: int, symmetric: bool) -> None:
    """On the device, for one row and for many."""
    matrix = draw(80, 150, seed=1)
    found = QuantizedMatrix.of(matrix, kind, 32, symmetric=symmetric)
    rounded = np.asarray(found.dequantized()).astype(np.float64)
    for shape in ((150,), (1, 150), (2, 9, 150)):
        x = draw(*shape, seed=2)
        wanted = x @ rounded.T
        np.testing.assert_allclose(found.product(x), wanted, atol=1e-5 * np.abs(wanted).max())


@every_kind
@pytest.mark.parametrize("batch", [1, 64])
def test_one_kernel_reads_the_integers_and_writes_no_others(kind: str, largest: int, batch: int) -> None:
    matrix = QuantizedMatrix.of(draw(256, 512), kind, 64)
    lowered = lx.compile(lambda m, x: m.product(x)).lower(matrix, draw(batch, 512))
    assert len(re.findall(r"^kernel ", lowered.as_text("kernels"), re.MULTILINE)) == 1
    cost = lowered.compile().cost()
    width = {"int8": 1.0, "int4": 0.5}[kind]
    read = 256 * 512 * width + 256 * 8 * 4 + batch * 512 * 4
    assert read <= cost.bytes_read <= read + 32 and cost.bytes_written == batch * 256 * 4


@every_kind
@pytest.mark.usefixtures("reference_backend")
def test_layers_are_near_those_they_were_made_of(kind: str, largest: int) -> None:
    linear = Linear(64, 24, key=lx.random.key(0))
    rounded = QuantizedLinear.from_linear(linear, kind, 32)
    x = draw(5, 64)
    # An element's error is at most half a scale, and the scale a part of the bound of Linear's uniform weights.
    allowed = np.abs(x).sum(axis=1, keepdims=True) * 0.51 * 64**-0.5 / largest
    assert np.all(np.abs(np.asarray(rounded(x)) - np.asarray(linear(x))) <= allowed)
    table = Embedding(10, 64, key=lx.random.key(1), dtype="bfloat16")
    looked_up = QuantizedEmbedding.from_embedding(table, kind, 32)
    ids = np.array([[3, 9, 3]])
    assert looked_up(ids).dtype == "bfloat16" and looked_up(ids).shape == (1, 3, 64)
    whole = np.asarray(looked_up.matrix.dequantized())
    exact = np.asarray(table.weight).astype(np.float32)
    assert np.abs(whole - exact).max() <= 0.51 * np.abs(exact).max() / largest
    np.testing.assert_allclose(np.asarray(looked_up(ids)).astype(np.float32)[0], whole[ids[0]], rtol=2**-8)
    np.testing.assert_allclose(looked_up.attend(x), x @ whole.T, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("reference_backend")
def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="kind is one of 'int8', 'int4', got 'int3'"):
        QuantizedMatrix.of(draw(4, 4), "int3")
    with pytest.raises(ValueError, match="a group of int4 is a multiple of 8, got 12"):
        QuantizedMatrix.of(draw(4, 4), "int4", 12)
    with pytest.raises(ValueError, match=r"two axes, got the shape \(4,\)"):
        QuantizedMatrix.of(draw(4))
