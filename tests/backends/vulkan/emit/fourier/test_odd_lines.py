"""Transforms of real lines of odd length: which steps they take, their values, derivatives and batches."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import REGISTER_LIMITS, odd_steps_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.target import Target, Transforms

RANDOM = np.random.default_rng(9)
TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 32)


def _lines(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def _spectra(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


def _operations(function: str, shape: tuple[int, ...], dtype: str, length: int, target: Target) -> list[str]:
    graph = lx.trace(lambda x: getattr(lnp.fft, function)(x, n=length))(lx.ShapeDtype(shape, dtype))
    return [node.op for node in prepare(graph, target).nodes if node.op.startswith("fourier")]


def test_operations_of_each_device() -> None:
    forward = {75: [], 375: ["fourier_to_half"], 16807: ["fourier_step", "fourier_to_half"]}
    inverse = {75: [], 375: ["fourier_from_half"], 16807: ["fourier_from_half", "fourier_step"]}
    for length, others in forward.items():
        assert _operations("rfft", (4, length), "float32", length, TARGET) == ["fourier_from_reals", *others]
    for length, others in inverse.items():
        half = (4, length // 2 + 1)
        assert _operations("irfft", half, "complex64", length, TARGET) == [*others, "fourier_to_reals"]
    assert _operations("rfft", (4, 75), "float32", 75, Target(transforms=Transforms())) == ["fourier_step"]


def test_the_first_step_reads_and_the_last_one_writes_in_the_shape_of_users() -> None:
    for length in (75, 375):
        whole, half = lx.ShapeDtype((5, 2, length), "float32"), lx.ShapeDtype((5, 2, length // 2 + 1), "complex64")
        for graph in (lx.trace(lnp.fft.rfft)(whole), lx.trace(lambda s, n=length: lnp.fft.irfft(s, n))(half)):
            assert "kind=map" not in str(schedule(prepare(graph, TARGET), target=TARGET))


def test_steps() -> None:
    for points in range(3, 2000, 2):
        steps = odd_steps_of(points, CPU_DRIVER)
        assert not steps or (np.prod(steps) == points and steps[0] <= REGISTER_LIMITS.real_cpu)
    found = {points: odd_steps_of(points, CPU_DRIVER) for points in (1, 64, 127, 375, 2187, 16807)}
    assert found == {1: (), 64: (), 127: (127,), 375: (25, 15), 2187: (81, 27), 16807: (49, 49, 7)}
    assert odd_steps_of(375, GENERIC_GPU) == ()


# One step: primes, powers, products of two and three primes, a convolution; two, with columns of an even and an odd
# number, two and one together, and of a large prime; three, also with two columns and several places between points.
@pytest.mark.parametrize("length", [3, 7, 9, 15, 25, 45, 105, 37, 129, 225, 375, 387, 3125, 7**5, 27**3])
def test_values(length: int) -> None:
    limit = 2**-24 * max(np.log2(length), 2)  # half of what is promised
    lines = max((1 << 14) // length + 1, 3)  # where large primes have steps
    x, s = _lines(lines, length), _spectra(lines, length // 2 + 1)
    expected = np.fft.rfft(x.astype(np.float64))
    assert np.linalg.norm(np.asarray(lnp.fft.rfft(x)) - expected) <= limit * np.linalg.norm(expected)
    back = np.fft.irfft(s.astype(np.complex128), length)  # which ignores the imaginary part of the first number
    assert np.linalg.norm(np.asarray(lnp.fft.irfft(s, length)) - back) <= limit * np.linalg.norm(back)


def test_numbers_of_one_line_do_not_show_in_another() -> None:
    x = _lines(4, 375) * np.array([[1e-10], [1e10], [1], [1]], np.float32)
    x[2, 100] = np.nan
    found = np.asarray(lnp.fft.rfft(x))
    for line in (0, 1, 3):
        expected = np.fft.rfft(x[line].astype(np.float64))
        assert np.linalg.norm(found[line] - expected) <= 1e-6 * np.linalg.norm(expected)
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize("length", [15, 145])
def test_gradients_in_the_middle(length: int) -> None:
    """Of 3·Σ v·(F(2x) ⊙ w): F's matrix, by NumPy in float64, times 6·v·w."""
    x, w = _lines(2, length), _spectra(2, length // 2 + 1)
    found = lx.grad(lambda x: 3 * lnp.sum(lnp.real(lnp.fft.rfft(2 * x) * w)))(x)
    rows = np.fft.rfft(np.eye(length))
    np.testing.assert_allclose(np.asarray(found), 6 * (w @ rows.T).real, rtol=1e-4, atol=2e-4)
    v = _lines(2, length)
    found = lx.grad(lambda s: 3 * lnp.sum(lnp.fft.irfft(2 * s, length) * v))(w)
    basis = np.eye(length // 2 + 1)
    real, imaginary = (np.fft.irfft(unit * basis, length) for unit in (1, 1j))
    expected = 6 * (v @ real.T - 1j * (v @ imaginary.T))  # ∂/∂x − i·∂/∂y
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)


def test_steps_read_through_what_is_computed_before() -> None:
    x = _lines(200, 75)
    found = lx.compile(lambda x: lnp.fft.irfft(lnp.fft.rfft(lnp.sin(x) + 1, norm="ortho") * 2j, 75, norm="ortho"))(x)
    expected = np.fft.irfft(np.fft.rfft(np.sin(x) + 1) * 2j, 75)
    np.testing.assert_allclose(np.asarray(found), expected, atol=2e-6)


def test_other_axes_and_batches() -> None:
    x = _lines(3, 195, 4)
    expected = np.fft.rfft(x, axis=1)
    np.testing.assert_allclose(np.asarray(lnp.fft.rfft(x, axis=1)), expected, atol=1e-4)
    batched = lx.vmap(lambda line: lnp.fft.rfft(line), in_axes=2, out_axes=2)(x)
    np.testing.assert_allclose(np.asarray(batched), expected, atol=1e-4)


def test_double_precision() -> None:
    with lx.enable_x64():
        for length in (25, 315):
            x = RANDOM.normal(size=(3, length))
            spectrum = lnp.fft.rfft(x)
            np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfft(x), atol=2e-13)
            np.testing.assert_allclose(np.asarray(lnp.fft.irfft(spectrum, length)), x, atol=1e-14)
