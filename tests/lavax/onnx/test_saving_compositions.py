"""Operations that ONNX has no operator for are written as others, and other runtimes give the same numbers."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from tests.lavax.onnx.test_saving import compare

onnx = pytest.importorskip("onnx", reason="the package that checks ONNX models")
pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4)).astype(np.float32)
POSITIVE = RNG.uniform(0.3, 9, size=(3, 4)).astype(np.float32)
SQUARE = RNG.normal(size=(2, 5, 5)).astype(np.float32)
DEFINITE = (SQUARE @ SQUARE.transpose(0, 2, 1) + np.eye(5)).astype(np.float32)
RIGHT = RNG.normal(size=(2, 5, 3)).astype(np.float32)
HEADS = RNG.normal(size=(2, 5, 2, 8)).astype(np.float32)
BITS = np.array([*RNG.integers(0, 2**32, 60, dtype=np.uint32), 0, 0x80000000, 1, 0x7F800000], np.uint32)
FLOATS = np.array([0, -0.0, 1, -1.5, 3e38, 1e-38, 1e-42, -7e-45, np.inf, -np.inf, 3.14], np.float32)
AROUND_POLES = np.array([-3.3, -0.5, 0.1, 0.5, 1, 1.5, 2, 3, 7.9, 8, 20, 100], np.float32)


def _by_triangles(matrix: Any, right: Any) -> Any:
    solve = lx.scipy.linalg.solve_triangular
    return [solve(matrix[0], right[0], lower=low, trans=turn) for low in (False, True) for turn in (0, 1)]


def _attention_loss(heads: Any) -> Any:
    return lnp.sum(nn.dot_product_attention(heads, heads, heads, is_causal=True) ** 2)


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "cholesky": (lnp.linalg.cholesky, (DEFINITE,)),
    "gradient of cholesky": (lx.grad(lambda s: lnp.sum(lnp.linalg.cholesky(s) ** 3)), (DEFINITE,)),
    "solve": (lnp.linalg.solve, (SQUARE, RIGHT)),
    "gradient of solve": (lx.grad(lambda a, b: lnp.sum(lnp.linalg.solve(a, b) ** 2)), (DEFINITE, RIGHT)),
    "inverse and determinant": (lambda a: [lnp.linalg.inv(a), lnp.linalg.det(a)], (SQUARE,)),
    "triangles": (_by_triangles, (DEFINITE, RIGHT)),
    "qr": (lambda a: lnp.linalg.qr(a[:, :, :3]), (SQUARE,)),
    "whole basis": (lambda a: lnp.linalg.qr(a[:, :, :3], mode="complete"), (SQUARE,)),
    "gradient of attention": (lx.grad(_attention_loss), (HEADS,)),
    "checkpoint": (lx.grad(lambda x: lnp.sum(lx.checkpoint(lambda y: lnp.sin(y) ** 2)(x))), (X,)),
    "bits as integers": (lambda b: lax.bitcast_convert_type(b, "int32"), (BITS,)),
    "bits as numbers": (lambda b: lnp.nan_to_num(lax.bitcast_convert_type(b, "float32")), (BITS,)),
    "bits of numbers": (lambda x: lax.bitcast_convert_type(x, "uint32"), (FLOATS,)),
    "bits that are set": (
        lambda b: [lax.population_count(b.astype(t)) for t in ("uint8", "int32", "int8", "uint32")], (BITS,),
    ),
    "erfinv": (lax.erf_inv, (np.linspace(-0.999, 0.999, 41, dtype=np.float32),)),
    "gamma": (lambda x: [lax.lgamma(x), lax.digamma(x)], (AROUND_POLES,)),
    "ndtr": (lx.scipy.special.ndtr, (X,)),
    "logsumexp": (lambda x: [lax.cumlogsumexp(x, 1), lax.cumlogsumexp(x, 0, reverse=True)], (X,)),
    "spectrum": (lambda x: lnp.abs(lnp.fft.rfft(x, axis=1)), (X,)),
    "there and back": (lambda x: lnp.fft.irfft(lnp.fft.rfft(x, 30) * 2j), (X,)),
    "in a loop": (
        lambda x: lax.scan(lambda c, row: (c + lax.lgamma(row), lax.digamma(row)), lnp.zeros(4), x), (POSITIVE,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_compositions_give_the_same_numbers(name: str, tmp_path: Path) -> None:
    function, arguments = CASES[name]
    compare(function, *arguments, path=tmp_path / "f.onnx", tolerance=3e-6)


def test_draws_are_the_same(tmp_path: Path) -> None:
    def draw(key: Any) -> Any:
        return (
            lx.random.bits(key, (7,)), lx.random.normal(key, (9,)), lx.random.uniform(key, (5,)),
            lx.random.permutation(key, 8), lx.random.split(key), lx.random.gumbel(key, (6,)),
        )  # fmt: skip

    compare(draw, np.array([3, 2**32 - 5], np.uint32), path=tmp_path / "f.onnx")


def test_complex_values_are_pairs(tmp_path: Path) -> None:
    path, weight = tmp_path / "f.onnx", lnp.asarray((X + 2j * X[::-1]).astype(np.complex64))
    given = (X * (1 - 1j)).astype(np.complex64)
    lx.onnx.save(lambda z: z * weight + 1j, (given,), path)
    again = lx.onnx.load(path)
    made = again(again.parameters, z=np.stack([given.real, given.imag], -1))["output"]
    wanted = given * np.asarray(weight) + 1j
    np.testing.assert_allclose(made, np.stack([wanted.real, wanted.imag], -1), rtol=1e-5, atol=1e-6)


def test_bits_without_a_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(lx.ONNXError, match=r"bitcast.*: bits are written for float32"):
        lx.onnx.save(lambda x: lax.bitcast_convert_type(x, "uint16"), (X.astype("float16"),), tmp_path / "f.onnx")
    assert not list(tmp_path.iterdir())


def test_integers_without_sign_beyond_the_signed_ones(tmp_path: Path) -> None:
    """Also where the reader has no 64 bits."""
    x = np.array([4294967293, 5, 0, 2**31, 2**31 + 7, 4294967295, 77], np.uint32)
    y = np.array([4, 7, 3, 2**31, 4294967295, 1, 2**31 + 1], np.uint32)

    def function(x: lx.Array, y: lx.Array) -> list[Any]:
        rows = lnp.stack([x, y])
        extrema = [lnp.max(rows, 1), lnp.min(rows, 0), lax.cummax(rows, 1), lax.cummin(rows, 0), lnp.clip(x, 3, y)]
        return [x // y, x % y, x + lnp.float32(3e9).astype("uint32"), lnp.where(x > y, x, y), *extrema]

    compare(function, x, y, path=tmp_path / "f.onnx")


def test_order_and_quotients_of_64_bits_without_sign(tmp_path: Path) -> None:
    x = np.array([3, 2**63 + 5, 7, 2**64 - 1, 2**63 - 1, 0], np.uint64)
    y = np.array([2, 2**63 + 4, 2**63, 3, 2**62, 9], np.uint64)

    def function(x: lx.Array, y: lx.Array) -> list[Any]:
        chosen = [lnp.max(x), lnp.min(y), lnp.maximum(x, y), lax.cummax(x), lnp.sort(x), lnp.argsort(y)]
        return [*chosen, x < y, x >= y, x // y, x % y]

    with lx.enable_x64():
        compare(function, x, y, path=tmp_path / "f.onnx")


def test_shifts_of_64_bits(tmp_path: Path) -> None:
    x, by = np.array([2**40 + 5, -7, 3, -(2**62)], np.int64), np.array([2, 1, 70, 33], np.int64)
    with lx.enable_x64():
        compare(lambda x, by: [x >> by, x << by, lax.shift_right_logical(x, by)], x, by, path=tmp_path / "f.onnx")
