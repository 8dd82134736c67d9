"""Transforms of real lines along another axis than the last one: which steps they take, their values, derivatives and
batches."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.choose import REGISTER_LIMITS
from lavax.backends.vulkan.emit.fourier.steps.reals_across import across_steps_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.run.execution import backend, backend_with, run
from tests.sweeps import each_value

RANDOM = np.random.default_rng(10)
TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
Function = Callable[[Any], Any]


def _lines(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def _spectra(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


def _operations(function: Function, shape: tuple[int, ...], dtype: str = "float32") -> list[str]:
    graph = prepare(lx.trace(function)(lx.ShapeDtype(shape, dtype)), TARGET)
    assert not any(node.op == "transpose" for node in graph.nodes)
    assert "kind=map" not in str(schedule(graph, target=TARGET))
    return [node.op.removeprefix("fourier_across_") for node in graph.nodes if node.op.startswith("fourier")]


def test_nothing_is_transposed() -> None:
    last = {24: [], 512: ["to_half"], 32768: ["fourier_step", "to_half"]}
    first = {24: [], 512: ["from_half"], 32768: ["from_half", "fourier_step"]}
    for length in last:
        assert _operations(lambda x: lnp.fft.rfft(x, axis=1), (2, length, 8)) == ["from_reals", *last[length]]
        half = (2, length // 2 + 1, 8)
        found = _operations(lambda s, n=length: lnp.fft.irfft(s, n, axis=1), half, "complex64")
        assert found == [*first[length], "to_reals"]


def test_lines_of_images_and_volumes() -> None:
    """A batch of one axis, and of two; real lines are across in the transform of the axes in another order."""
    assert _operations(lnp.fft.rfft2, (64, 512))[-1] == "fourier_step"
    assert _operations(lambda x: lnp.fft.rfftn(x, axes=(1, 0)), (64, 512))[0] == "from_reals"
    assert _operations(lx.vmap(lnp.fft.rfft, in_axes=1, out_axes=1), (512, 64)) == ["from_reals", "to_half"]


def test_steps() -> None:
    lengths = (64, 74, 1000, 4096)
    found = {points: across_steps_of(points, 256, points << 8, False, False, CPU_DRIVER) for points in lengths}
    assert found == {64: (64,), 74: (37, 2), 1000: (50, 20), 4096: (16, 16, 16)}
    for points in range(2, 2000):
        for inverse in (False, True):
            steps = across_steps_of(points, 1000, points * 1000, inverse, False, CPU_DRIVER)
            assert not steps or (np.prod(steps) == points and steps[0] <= REGISTER_LIMITS.real_across)
    assert across_steps_of(1000, 1000, 1000 * 1000, True, False, CPU_DRIVER) == (10, 10, 10)  # lines that lie far apart
    assert across_steps_of(512, 1536, 512 * 1536, True, False, CPU_DRIVER) == (8, 8, 8)
    assert across_steps_of(512, 1536, 512 * 1536, True, True, CPU_DRIVER) == (16, 32)  # of cosines, half as far
    # A step that makes a spectrum of words has few points, unless lines lie far apart.
    assert across_steps_of(2048, 16, 13 << 15, True, True, CPU_DRIVER) == (32, 8, 8)
    assert across_steps_of(720, 16, 1 << 18, True, True, CPU_DRIVER) == (45, 16)
    assert max(across_steps_of(2048, 2, 1 << 12, False, False, CPU_DRIVER)) <= 16  # few numbers
    # Where there would be four steps or more, lanes share the points of the last complex one of three narrow ones.
    many = {8192: (16, 4, 128), 16384: (16, 8, 128), 8400: (15, 5, 112), 5000: (10, 10, 10, 5), 65536: (16,) * 4}
    assert {n: across_steps_of(n, 8, 1 << 20, True, False, CPU_DRIVER) for n in many} == many
    assert across_steps_of(3125, 8, 1 << 20, True, False, CPU_DRIVER) == (5,) * 5  # of an odd number of points none do
    assert across_steps_of(1000, 3, 3000, False, False, CPU_DRIVER) == ()
    assert across_steps_of(67, 8, 536, False, False, CPU_DRIVER) == ()
    assert across_steps_of(1000, 1000, 1000 * 1000, False, False, GENERIC_GPU) == ()


# One step: powers of two, an odd number, products of two and three primes, a prime; two, with columns of an even and an
# odd number, the last frequency in the first column, in the middle one and in none, a step of two lines and of one;
# three, with several places between points. Neighbours: two lines, two and four, four.
@each_value(
    length=[2, 3, 4, 6, 8, 15, 30, 32, 37, 60, 64, 74, 75, 96, 98, 375, 500, 512, 1125, 4096, 5000], behind=[2, 6, 8]
)
def test_values(length: int, behind: int) -> None:
    limit = 2**-24 * max(np.log2(length), 2)  # half of what is promised
    x, s = _lines(2, length, behind), _spectra(2, length // 2 + 1, behind)
    expected = np.fft.rfft(x.astype(np.float64), axis=1)
    found = np.asarray(lx.compile(lambda x: lnp.fft.rfft(x, axis=1))(x))
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)
    back = np.fft.irfft(s.astype(np.complex128), length, axis=1)  # which ignores imaginary parts of the ends
    found = np.asarray(lx.compile(lambda s: lnp.fft.irfft(s, length, axis=1))(s))
    assert np.linalg.norm(found - back) <= limit * np.linalg.norm(back)


@pytest.mark.parametrize("length", [8192, 8400])
def test_lanes_share_the_points_of_a_step_of_many_lines(length: int) -> None:
    s = _spectra(1, length // 2 + 1, (1 << 19) // length // 2 * 2 + 2)
    expected = np.fft.irfft(s.astype(np.complex128), length, axis=1)
    found = np.asarray(lx.compile(lambda s: lnp.fft.irfft(s, length, axis=1))(s))
    assert np.linalg.norm(found - expected) <= 2**-24 * np.log2(length) * np.linalg.norm(expected)


# The last frequency of 70, 98 and 540 points is in the middle one of an even number of columns.
@pytest.mark.parametrize("length", [70, 98, 512, 540])
def test_ends_are_real(length: int) -> None:
    found = np.asarray(lnp.fft.rfft(_lines(length, 8), axis=0))
    assert not found.imag[[0, -1]].any()


# One step, two, three; columns of an even number and of an odd one; two lines, two and four, four.
@each_value(length=[2, 3, 8, 25, 64, 75, 512, 1000, 4096], behind=[2, 6, 8])
def test_conjugates_are_of_lines_in_the_opposite_order(length: int, behind: int) -> None:
    x, s = _lines(2, length, behind), _spectra(2, length // 2 + 1, behind)
    limit = 2**-24 * max(np.log2(length), 2)
    there = lx.compile(lambda x: lnp.fft.ihfft(x, axis=1))
    back = lx.compile(lambda s: lnp.fft.hfft(s, length, axis=1))
    for transform, operand in ((there, x), (back, s)):
        text = transform.lower(operand).as_text("kernels")
        is_across = "folded=2" in text and "kind=map" not in text and "negate" not in text
        assert is_across or backend().profile.kind != "cpu"
    expected = np.fft.ihfft(x.astype(np.float64), axis=1)
    assert np.linalg.norm(np.asarray(there(x)) - expected) <= limit * np.linalg.norm(expected)
    expected = np.fft.hfft(s.astype(np.complex128), length, axis=1)
    assert np.linalg.norm(np.asarray(back(s)) - expected) <= limit * np.linalg.norm(expected)


def test_conjugates_of_spectra_that_are_read_elsewhere_or_of_an_odd_number_of_lines() -> None:
    x = _lines(96, 4)
    found = lx.compile(lambda x: (s := lnp.fft.rfft(x, axis=0), lnp.conj(s)))(x)
    expected = np.fft.rfft(x, axis=0)
    np.testing.assert_allclose(np.asarray(found[0]), expected, atol=1e-4)
    np.testing.assert_allclose(np.asarray(found[1]), expected.conj(), atol=1e-4)
    x = _lines(96, 3)
    found = lx.compile(lambda x: lnp.fft.ihfft(x, axis=0))(x)
    np.testing.assert_allclose(np.asarray(found), np.fft.ihfft(x, axis=0), atol=1e-6)


def test_many_numbers_in_the_opposite_order() -> None:
    """Rows that are read before they are written."""
    s = _spectra(513, 600)
    found = np.asarray(lx.compile(lambda s: lnp.fft.hfft(s, axis=0))(s))
    expected = np.fft.hfft(s.astype(np.complex128), axis=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


@pytest.mark.parametrize("length", [16, 512, 1000])
def test_numbers_of_one_line_do_not_show_in_another(length: int) -> None:
    x = _lines(length, 4) * np.array([1e-10, 1e10, 1, 1], np.float32)
    x[length // 3, 2] = np.nan
    found = np.asarray(lnp.fft.rfft(x, axis=0))
    for line in (0, 1, 3):
        expected = np.fft.rfft(x[:, line].astype(np.float64))
        assert np.linalg.norm(found[:, line] - expected) <= 1e-6 * np.linalg.norm(expected)
    assert np.isnan(found[:, 2]).all()
    s = _spectra(length // 2 + 1, 4) * np.array([1e-10, 1e10, 1, 1], np.float32)
    s[length // 3, 2] = np.nan
    s.imag[[0, -1], 3] = np.nan  # which is ignored
    back = np.asarray(lnp.fft.irfft(s, axis=0))
    for line in (0, 1, 3):
        s.imag[[0, -1], line] = 0
        expected = np.fft.irfft(s[:, line].astype(np.complex128))
        assert np.linalg.norm(back[:, line] - expected) <= 1e-6 * np.linalg.norm(expected)
    assert np.isnan(back[:, 2]).any()


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("length", [8, 9, 61, 134, 262])
def test_no_number_in_a_part_that_is_ignored_shows(length: int, kind: str) -> None:
    """Along any axis, whatever the spectrum is scaled by, and whatever kernels transform it."""
    for axis, norm in ((0, None), (1, "ortho"), (2, "forward")):
        shape = [3, 2, 4]
        shape[axis] = length // 2 + 1
        clean = _spectra(*shape)
        spectrum = clean.copy()
        ignored = (0, -1) if length % 2 == 0 else (0,)
        for place, number in zip(ignored, (np.nan, np.inf), strict=False):
            at = (slice(None),) * axis + (place,)
            clean.imag[at], spectrum.imag[at] = 0, number
        graph = lx.trace(lambda s, axis=axis, norm=norm: lnp.fft.irfft(s, length, axis, norm))(spectrum)
        (found,) = run(graph, [spectrum], device=backend_with(kind=kind))
        expected = np.fft.irfft(clean.astype(np.complex128), length, axis, norm)
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())


@pytest.mark.parametrize("length", [15, 16, 144])
def test_gradients_in_the_middle(length: int) -> None:
    """Of 3·Σ v·(F(2x) ⊙ w): F's matrix, by NumPy in float64, times 6·v·w."""
    x, w = _lines(length, 4), _spectra(length // 2 + 1, 4)
    found = lx.grad(lambda x: 3 * lnp.sum(lnp.real(lnp.fft.rfft(2 * x, axis=0) * w)))(x)
    rows = np.fft.rfft(np.eye(length))
    np.testing.assert_allclose(np.asarray(found), 6 * (rows @ w).real, rtol=1e-4, atol=2e-4)
    v = _lines(length, 4)
    found = lx.grad(lambda s: 3 * lnp.sum(lnp.fft.irfft(2 * s, length, axis=0) * v))(w)
    basis = np.eye(length // 2 + 1)
    real, imaginary = (np.fft.irfft(unit * basis, length) for unit in (1, 1j))
    expected = 6 * (real @ v - 1j * (imaginary @ v))  # ∂/∂x − i·∂/∂y
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)


def test_steps_read_through_what_is_computed_before() -> None:
    x = _lines(96, 20)

    def filtered(x: Any) -> Any:
        return lnp.fft.irfft(lnp.fft.rfft(lnp.sin(x) + 1, axis=0, norm="ortho") * 2j, 96, axis=0, norm="ortho")

    expected = np.fft.irfft(np.fft.rfft(np.sin(x) + 1, axis=0) * 2j, 96, axis=0)
    np.testing.assert_allclose(np.asarray(lx.compile(filtered)(x)), expected, atol=2e-6)


def test_lines_that_are_padded_cut_and_transposed() -> None:
    x = _lines(3, 60, 8)
    for n in (48, 100):
        found = lx.compile(lambda x, n=n: lnp.fft.rfft(x, n, axis=1))(x)
        np.testing.assert_allclose(np.asarray(found), np.fft.rfft(x, n, axis=1), atol=1e-4)
    found = lx.compile(lambda x: lnp.fft.rfft(lnp.transpose(x, (2, 0, 1))))(x)
    np.testing.assert_allclose(np.asarray(found), np.fft.rfft(x.transpose(2, 0, 1)), atol=1e-4)
    s = _spectra(3, 31, 8)
    found = lx.compile(lambda s: lnp.fft.irfft(lnp.transpose(s, (2, 0, 1))))(s)
    np.testing.assert_allclose(np.asarray(found), np.fft.irfft(s.transpose(2, 0, 1)), atol=1e-5)


def test_batches_and_several_axes() -> None:
    x = _lines(3, 96, 4)
    batched = lx.vmap(lambda line: lnp.fft.rfft(line), in_axes=2, out_axes=2)(x)
    np.testing.assert_allclose(np.asarray(batched), np.fft.rfft(x, axis=1), atol=1e-4)
    for axes in ((0, 1), (2, 1), (1, 0), (2, 0, 1)):
        spectrum = lnp.fft.rfftn(x, axes=axes)
        np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfftn(x, axes=axes), atol=1e-3)
        lengths = [x.shape[axis] for axis in axes]
        np.testing.assert_allclose(np.asarray(lnp.fft.irfftn(spectrum, lengths, axes)), x, atol=1e-5)


def test_double_precision() -> None:
    with lx.enable_x64():
        for length in (24, 25, 320):
            x = RANDOM.normal(size=(length, 4))
            spectrum = lnp.fft.rfft(x, axis=0)
            np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfft(x, axis=0), atol=2e-13)
            np.testing.assert_allclose(np.asarray(lnp.fft.irfft(spectrum, length, axis=0)), x, atol=1e-14)
