"""Cosine and sine transforms of type 4 of even length: which steps they take, their values, derivatives and batches."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy.fft as lsf
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.base.errors import ShapeError
from lavax.ir.types import TensorType, float32
from lavax.passes.build.builder import build
from lavax.passes.prepare.pipeline import prepare
from tests.sweeps import all_pairs

RANDOM = np.random.default_rng(15)


def _operations(shape: tuple[int, ...], axis: int, profile: DeviceProfile = CPU_DRIVER) -> list[str]:
    graph = lx.compile(lambda x: lsf.dct(x, 4, axis=axis)).lower(lx.ShapeDtype(shape, "float32"))._parts.graph
    nodes = prepare(graph, target_of(profile, 1 << 34, 1 << 32)).nodes
    found = (node.op for node in nodes)
    return [op.removeprefix("fourier_") for op in found if op.startswith(("fourier", "transpose", "concatenate"))]


def test_steps() -> None:
    both = ["from_paired", "to_paired"]
    for shape, axis, steps in (
        ((8, 24), 1, ["paired"]),
        ((8, 50), 1, ["paired"]),  # 25 pairs
        ((8, 150), 1, both),  # an odd number of columns
        ((8, 1024), 1, both),
        ((8, 4096), 1, ["from_paired", "step", "to_paired"]),
        ((64, 8), 0, ["paired"]),
        ((64, 3), 0, ["transpose", "paired"]),  # along memory, read and written beside each other
        ((64, 64, 3), 1, ["transpose", "paired"]),
        ((64, 64, 17), 1, ["paired"]),
        ((2, 512, 8), 1, both),
        ((2, 512, 3), 1, both),
        ((100000, 2), 0, ["from_paired", "step", "step", "to_paired"]),
    ):
        assert _operations(shape, axis) == steps, shape
    others = (
        _operations((8, 1024), 1, GENERIC_GPU),
        _operations((8, 2 * 131), 1),  # a convolution
        _operations((8000, 2 * 67), 1),  # a prime number of pairs that two columns are no step of
        _operations((8, 75), 1),
    )
    assert not any("paired" in step for steps in others for step in steps)


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_nothing_is_moved_beside_the_steps() -> None:
    for shape, axis in (((40, 1024), 1), ((64, 5000), 1), ((512, 96), 0)):
        text = lx.compile(lambda x, axis=axis: lsf.dst(x, 4, axis=axis)).lower(lx.ShapeDtype(shape, "float32"))
        assert "kind=map" not in text.as_text("kernels")
    both = lx.compile(lambda x: lsf.dctn(x, 4)).lower(lx.ShapeDtype((96, 512), "float32")).as_text("kernels")
    assert "kind=map" not in both and both.count("fourier_from_paired") == 2


@all_pairs(
    length=[2, 4, 6, 8, 30, 48, 100, 128, 150, 250, 262, 512, 1000, 1024, 2500, 4096, 9000],
    behind=[1, 2, 3, 4, 6],
    name=["dct", "dst", "idct", "idst"],
    wide=[False, True],
)
def test_values(length: int, behind: int, name: str, wide: bool) -> None:
    shape = (max(-(-(1 << 14) // (length * behind)), 2), length, behind)
    x = RANDOM.normal(size=shape).astype(np.float64 if wide else np.float32)
    expected = getattr(scipy.fft, name)(x.astype(np.float64), 4, axis=1)
    with config.enable_x64(wide):
        found = np.asarray(lx.compile(lambda x: getattr(lsf, name)(x, 4, axis=1))(x))
    assert found.dtype == x.dtype
    limit = 2.0 ** (-53 if wide else -24) * max(np.log2(length), 2)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


def test_numbers_that_are_computed_where_they_are_read() -> None:
    x = RANDOM.normal(size=(40, 1024)).astype(np.float32)
    for axis in (0, 1):
        found = lx.compile(lambda x, axis=axis: 3 * lsf.dct(lnp.flip(x * x, axis), 4, axis=axis))(x)
        expected = 3 * scipy.fft.dct(np.flip(x.astype(np.float64) ** 2, axis), 4, axis=axis)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["dct", "dst"])
def test_derivatives_are_transforms(name: str) -> None:
    """The matrix is symmetric: a cotangent, and a tangent, are transformed alike."""
    x, weight = RANDOM.normal(size=(2, 3, 60, 2)).astype(np.float32)

    def along(x: Any) -> Any:
        return getattr(lsf, name)(x, 4, axis=1)

    of = getattr(scipy.fft, name)
    gradient = lx.compile(lx.grad(lambda x: lnp.sum(along(x) * weight)))
    np.testing.assert_allclose(np.asarray(gradient(x)), of(weight, 4, axis=1), atol=1e-4)
    assert gradient.lower(x).as_text().count("trigonometric_4") == 1
    _, tangent = lx.jvp(along, (x,), (weight,))
    np.testing.assert_allclose(np.asarray(tangent), of(weight, 4, axis=1), atol=1e-4)
    second = lx.grad(lambda x: lnp.sum(lx.grad(lambda x: lnp.sum(along(x) ** 3))(x) * weight))(x)
    y, w = (of(value.astype(np.float64), 4, axis=1) for value in (x, weight))
    expected = of(6 * y * w, 4, axis=1)
    np.testing.assert_allclose(np.asarray(second), expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_batches() -> None:
    x = RANDOM.normal(size=(3, 4, 20)).astype(np.float32)
    for axis in (0, 1, 2):
        found = lx.vmap(lambda x: lsf.dct(x, 4, axis=0), axis, axis)(x)
        expected = scipy.fft.dct(x, 4, axis=1 if axis == 0 else 0)
        np.testing.assert_allclose(np.asarray(found), expected, atol=1e-4)


def test_types() -> None:
    odd, x = (TensorType((2, n), float32) for n in (9, 8))
    for wrong, words in (
        (lambda: build("trigonometric_4", _input(odd), axis=1), "even number"),
        (lambda: build("trigonometric_4", _input(x), axis=2), "axis 2 is not an axis"),
        (lambda: build("fourier_paired", _input(x), type=x, sines=False), r"no \[lines,2·half,behind\]"),
        (lambda: build("fourier_to_paired", _input(x), type=x, sines=False), r"no \[lines,points"),
        (
            lambda: build("fourier_from_paired", _input(x.with_shape((2, 8, 1))), type=x, points=3, sines=False),
            r"no \[lines,2·3·rest,behind\]",
        ),
    ):
        with pytest.raises(ShapeError, match=words):
            wrong()


def _input(type: TensorType) -> Any:
    return build("constant", type=type, value=0.0)
