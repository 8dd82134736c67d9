"""Transforms of real lines that lie beside each other, an odd number of neighbours: which steps they take, their
values, derivatives and batches."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.fourier.beside import are_kept_beside
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.scipy import fft as transforms
from tests.sweeps import each_value

RANDOM = np.random.default_rng(12)
TARGET = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
Function = Callable[[Any], Any]


def _lines(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape)


def _spectra(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


def _narrow(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)


def _kernels(function: Function, shape: tuple[int, ...], dtype: str = "float32") -> str:
    return str(schedule(prepare(lx.trace(function)(lx.ShapeDtype(shape, dtype)), TARGET), target=TARGET))


def test_one_step_reads_and_writes_lines_where_they_are() -> None:
    assert _kernels(lambda x: lnp.fft.rfft(x, axis=1), (512, 512, 3)) == (
        "program (x: f32[512,512,3]) -> (%r0) arena=0\n"
        "kernel k0 kind=routine outer=[512,257,3,2]\n"
        "  [512,257,3,2] (x) -> (%r0)\n"
        "  graph (a0: f32[512,512,3]) {\n"
        "    %0 = transpose(a0) axes=[0,2,1] : f32[512,3,512]\n"
        "    %1 = reshape(%0) : f32[1536,256,1,2]\n"
        "    %2 = reshape(%1) : f32[1536,256,1,1,2]\n"
        "    %3 = reshape(%2) : f32[1536,256,1,2]\n"
        "    %4 = fourier_spectrum(%3) beside=3 : f32[512,257,3,2]\n"
        "    return %4\n"
        "  }"
    )


# Even and odd lengths of one step, two and three.
@pytest.mark.usefixtures("on_a_cpu_driver")
@each_value(length=[8, 27, 512, 1125, 5000, 16807])
def test_nothing_is_moved(length: int) -> None:
    half = length // 2 + 1
    forward = lambda x: lnp.fft.rfft(x, axis=1)  # noqa: E731
    inverse = lambda s: lnp.fft.irfft(s, length, axis=1)  # noqa: E731
    for function, shape, dtype in ((forward, (40, length, 3), "float32"), (inverse, (40, half, 3), "complex64")):
        text = _kernels(function, shape, dtype)
        assert text.count("kernel ") == 1 and text.count("beside=3") == 1 and "kind=map" not in text


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_conjugates_and_batches() -> None:
    functions: dict[Function, tuple[tuple[int, ...], str]] = {
        lambda x: lnp.fft.ihfft(x, axis=1): ((20, 512, 5), "float32"),
        lambda s: lnp.fft.hfft(s, axis=1): ((20, 257, 5), "complex64"),
        lx.vmap(lnp.fft.rfft, in_axes=2, out_axes=2): ((20, 512, 5), "float32"),
        lambda x: lnp.fft.rfft(x, axis=2): ((4, 5, 512, 3), "float32"),
    }
    for function, given in functions.items():
        text = lx.compile(function).lower(lx.ShapeDtype(*given)).as_text("kernels")
        assert text.count("kernel ") == 1 and "beside=" in text


def test_what_is_not_kept_beside() -> None:
    """An even number of neighbours, many, few long lines, lines of a large prime, and any on a GPU."""
    assert are_kept_beside(512, 3, 12, CPU_DRIVER) and are_kept_beside(512, 15, 15, CPU_DRIVER)
    for points, neighbours, lines in ((512, 1, 512), (512, 2, 512), (512, 17, 512), (100000, 3, 3)):
        assert not are_kept_beside(points, neighbours, lines, CPU_DRIVER)
    assert not are_kept_beside(512, 3, 1536, GENERIC_GPU)
    assert "beside=" not in _kernels(lambda x: lnp.fft.rfft(x, axis=1), (50, 2 * 1009, 3))
    assert "beside=" not in _kernels(lambda x: lnp.fft.rfft(x, axis=1), (50, 1009, 3))


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_steps_in_the_order_of_cosines_read_four_numbers_at_a_time() -> None:
    """So long lines are put along memory before them, but not put back."""
    function = lx.compile(lambda x: transforms.dct(x, axis=1))
    text = function.lower(lx.ShapeDtype((50, 512, 3), "float32")).as_text("kernels")
    assert text.count("kernel ") == 2 and "folded=1 beside=3" in text


# Even: pairs of one step, by registers and by lanes, two, three; odd: one, two, three.
LENGTHS = [2, 4, 6, 30, 50, 100, 256, 512, 1000, 1024, 2400, 5000, 3, 9, 127, 375, 1125, 3125, 16807]


@each_value(length=LENGTHS, beside=[3, 5, 15], wide=[False, True])
def test_values(length: int, beside: int, wide: bool) -> None:
    if wide and beside != 5:
        return
    parts = 5 if length > 40 else 7
    x, s = _lines(parts, length, beside), _spectra(parts, length // 2 + 1, beside)
    limit = 2.0 ** (-53 if wide else -24) * max(np.log2(length), 2)  # half of what is promised
    with config.enable_x64(wide):
        given = (x, s) if wide else (_narrow(x), _narrow(s))
        found = np.asarray(lx.compile(lambda x: lnp.fft.rfft(x, axis=1))(given[0]))
        back = np.asarray(lx.compile(lambda s: lnp.fft.irfft(s, length, axis=1))(given[1]))
    expected = np.fft.rfft(given[0].astype(np.float64), axis=1)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)
    expected = np.fft.irfft(given[1].astype(np.complex128), length, axis=1)
    assert np.linalg.norm(back - expected) <= limit * np.linalg.norm(expected)


# Two real numbers, one step by registers and by lanes, two, and three; in the opposite order as sines.
@each_value(length=[4, 30, 64, 512, 1000, 2400, 5000], function=["dct", "dst"])
def test_cosines_of_type_2(length: int, function: str) -> None:
    x = _narrow(_lines(5, length, 3))
    found = np.asarray(lx.compile(lambda x: getattr(transforms, function)(x, axis=1))(x))
    mirrored = x.astype(np.float64) * (1 if function == "dct" else (-1) ** np.arange(length)[:, None])
    spectrum = np.fft.fft(np.concatenate([mirrored, mirrored[:, ::-1]], 1), axis=1)[:, :length]
    expected = (spectrum * np.exp(-0.5j * np.pi * np.arange(length) / length)[:, None]).real
    expected = expected if function == "dct" else expected[:, ::-1]
    limit = 2**-24 * max(np.log2(length), 2)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


@each_value(function=["rfft", "irfft", "hfft", "ihfft"], norm=["ortho", "forward"], n=[96, 200, 75])
def test_norms_and_lengths_that_are_cut_or_padded(function: str, norm: str, n: int) -> None:
    x = _narrow((_spectra if function in ("irfft", "hfft") else _lines)(6, 100, 7))
    found = getattr(lnp.fft, function)(x, n, axis=1, norm=norm)
    expected = getattr(np.fft, function)(x, n, axis=1, norm=norm)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("length", [16, 512, 375, 5000])
def test_numbers_of_one_line_do_not_show_in_another(length: int) -> None:
    x = _narrow(_lines(4, length, 3) * np.array([1e-10, 1e10, 1]))
    x[1, length // 3, 2] = np.nan
    found = np.asarray(lx.compile(lambda x: lnp.fft.rfft(x, axis=1))(x))
    for line in (0, 1):
        expected = np.fft.rfft(x[1, :, line].astype(np.float64))
        assert np.linalg.norm(found[1, :, line] - expected) <= 1e-6 * np.linalg.norm(expected)
    assert np.isnan(found[1, :, 2]).all() and not np.isnan(found[[0, 2, 3]]).any()


@each_value(length=[64, 75, 2400])
def test_derivatives_in_the_middle(length: int) -> None:
    """Of 3·Σ v·|F(2x)|², first and second order: 12·F*(v·F(2x)) with the rows that stand for two twice."""
    shape = (4, length, 3)
    x, d, v = _lines(*shape), _lines(*shape), _lines(4, length // 2 + 1, 3)
    narrow = v.astype(np.float32)

    def energy(x: Any) -> Any:
        return 3 * lnp.sum(lnp.abs(lnp.fft.rfft(2 * x, axis=1)) ** 2 * narrow)

    def expected(x: np.ndarray) -> np.ndarray:
        whole = np.fft.rfft(2 * x, axis=1) * v
        padded = np.concatenate([whole, np.zeros((4, length - whole.shape[1], 3))], 1)
        return 12 * np.fft.ifft(padded, axis=1, norm="forward").real

    gradient = lx.grad(energy)
    found = np.asarray(lx.compile(gradient)(_narrow(x)))
    np.testing.assert_allclose(found, expected(x), rtol=0, atol=4e-6 * np.abs(expected(x)).max())
    second = np.asarray(lx.compile(lambda x, d: lx.jvp(gradient, (x,), (d,))[1])(_narrow(x), _narrow(d)))
    np.testing.assert_allclose(second, expected(d), rtol=0, atol=4e-6 * np.abs(expected(d)).max())


def test_there_and_back_through_a_batch() -> None:
    x = _narrow(_lines(3, 4, 120, 5))
    function = lx.vmap(lambda x: lnp.fft.irfft(lnp.fft.rfft(x, axis=1) * 2, 120, axis=1), in_axes=1, out_axes=1)
    np.testing.assert_allclose(np.asarray(lx.compile(function)(x)), 2 * x, rtol=0, atol=1e-5)
