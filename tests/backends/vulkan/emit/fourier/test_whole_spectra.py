"""Transforms of real numbers along several axes: which kernels they take, and their values, derivatives and batches."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.base.errors import ShapeError
from lavax.ir import TensorType
from lavax.ir.types import float32
from lavax.passes.build.builder import build
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

RANDOM = np.random.default_rng(21)


def _kernels(function: Any, shape: tuple[int, ...], profile: Any = CPU_DRIVER, dtype: str = "float32") -> str:
    target = target_of(profile, 1 << 34, 1 << 32)
    return str(schedule(prepare(lx.trace(function)(lx.ShapeDtype(shape, dtype)), target), target=target))


def test_half_the_spectra_are_transformed_and_copied_with_conjugates() -> None:
    text = _kernels(lnp.fft.fft2, (128, 64))
    assert text.count("fourier_spectrum") == 1 and "f32[128,33,2]" in text
    assert "whole_spectrum(a0) axis=1 length=64 opposite=[0] : f32[128,64,2]" in text


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    [
        (lnp.fft.fft, (128, 64), "float32"),  # one axis
        (lnp.fft.fft2, (128, 64), "complex64"),
        (lnp.fft.fft2, (16, 16), "float32"),  # few numbers
        (lambda x: lnp.fft.fft2(x, axes=(0, 1)), (128, 64, 3), "float32"),  # an odd number of neighbours
        (lambda x: lnp.fft.fft(lnp.fft.fft(x, axis=0), axis=0), (128, 64), "float32"),  # one axis twice
        (lambda x: lnp.fft.fft(lnp.fft.fft(x) ** 2, axis=0), (128, 64), "float32"),
    ],
)
def test_others_are_transforms_of_complex_numbers(function: Any, shape: tuple[int, ...], dtype: str) -> None:
    assert "whole_spectrum" not in _kernels(function, shape, dtype=dtype)


def test_gpus_transform_all_numbers() -> None:
    assert "whole_spectrum" not in _kernels(lnp.fft.fft2, (128, 64), GENERIC_GPU)


# Even and odd lengths, axes in any order, neighbours behind them, a large prime, and axes that are cut and padded.
@pytest.mark.usefixtures("on_a_cpu_driver")
@pytest.mark.parametrize(
    ("name", "dtype", "shape", "axes", "lengths"),
    [
        ("fftn", "float32", (96, 90), (0, 1), None),
        ("ifftn", "float64", (96, 88), (0, 1), None),
        ("fftn", "float64", (91, 95), (0, 1), None),
        ("ifftn", "float32", (90, 96), (1, 0), None),
        ("fftn", "float32", (5, 60, 34), (1, 2), None),
        ("ifftn", "float32", (24, 20, 22), (0, 1, 2), None),
        ("fftn", "float32", (24, 25, 22), (2, 0, 1), None),
        ("fftn", "float32", (24, 20, 22), (0, 2), None),
        ("fftn", "float64", (60, 44, 4), (0, 1), None),
        ("fftn", "float32", (40, 263), (0, 1), None),
        ("ifftn", "float32", (70, 130), (0, 1), (80, 120)),
    ],
)
def test_values(
    name: str, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], lengths: tuple[int, ...] | None
) -> None:
    x = RANDOM.normal(size=shape).astype(dtype)
    expected = getattr(np.fft, name)(x.astype(np.float64), s=lengths, axes=axes)
    with config.enable_x64(dtype == "float64"):
        found = np.asarray(lx.compile(lambda x: getattr(lnp.fft, name)(x, s=lengths, axes=axes))(x))
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert found.dtype == ("complex64" if dtype == "float32" else "complex128")
    assert error < 2 * np.log2(expected.size) * 2.0 ** (-24 if dtype == "float32" else -53)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_directions_may_differ() -> None:
    x = RANDOM.normal(size=(90, 96)).astype(np.float32)
    found = lx.compile(lambda x: lnp.fft.ifft(lnp.fft.fft(x, axis=0), axis=1))(x)
    np.testing.assert_allclose(np.asarray(found), np.fft.ifft(np.fft.fft(x, axis=0), axis=1), atol=1e-4)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_derivatives_and_batches() -> None:
    x = RANDOM.normal(size=(90, 96)).astype(np.float32)
    weight = RANDOM.normal(size=x.shape).astype(np.float32)

    def power(x: Any) -> Any:
        return lnp.sum(lnp.abs(lnp.fft.fft2(x)) ** 2 * weight)

    gradient = np.asarray(lx.compile(lx.grad(power))(x))
    expected = 2 * np.fft.ifft2(np.fft.fft2(x.astype(np.float64)) * weight).real * x.size
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    several = RANDOM.normal(size=(3, 64, 66)).astype(np.float32)
    found = lx.compile(lx.vmap(lnp.fft.fft2))(several)
    np.testing.assert_allclose(np.asarray(found), np.fft.fft2(several), atol=1e-3)


def test_types() -> None:
    half = build("constant", type=TensorType((4, 5, 2), float32), value=0.0)
    whole = TensorType((4, 8, 2), float32)
    for attrs, words in (
        ({"axis": 1, "length": 10, "opposite": (0,)}, "no 6 complex numbers along axis 1"),
        ({"axis": 1, "length": 8, "opposite": (1,)}, r"no other axes \(1,\)"),
    ):
        with pytest.raises(ShapeError, match=words):
            build("whole_spectrum", half, type=whole, **attrs)
