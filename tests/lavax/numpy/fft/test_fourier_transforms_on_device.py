"""Fourier transforms on the device: lengths of every kind, their errors, and the steps that they are made of."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.types import TensorType, complex64
from lavax.passes.complex_parts.fourier import smooth_length, widths
from lavax.tracer import bind

RANDOM = np.random.default_rng(12)


def test_steps_have_at_most_32_points() -> None:
    assert widths(1024) == ([32, 32], 1)
    assert sorted(widths(60)[0]) == [6, 10] and widths(97) == ([], 97)
    for length in (2, 360, 1000, 2**17, 3**9, 31**3, 5 * 131):
        steps, rest = widths(length)
        assert np.prod([*steps, rest]) == length and max(steps, default=1) <= 32
    assert widths(131) == ([], 131) and widths(262)[1] == 131


def test_lengths_of_convolutions() -> None:
    for least in (1, 2, 261, 8197, 100_000):
        found = smooth_length(least)
        assert least <= found <= 1.34 * least and widths(found)[1] == 1


# One step; two; odd and even lengths of large primes in one step; a prime, and one behind a step, by convolution; three
# steps.
@pytest.mark.parametrize("length", [1, 6, 60, 97, 3 * 37, 2 * 37, 131, 2 * 131, 2**11])
def test_the_error_is_a_few_units_of_the_norm(length: int) -> None:
    z = (RANDOM.normal(size=(2, length)) + 1j * RANDOM.normal(size=(2, length))).astype(np.complex64)
    there = lnp.fft.fft(z)
    wanted = np.fft.fft(z.astype(np.complex128))
    limit = 1.2e-7 * max(1, np.log2(length))
    assert np.linalg.norm(np.asarray(there) - wanted) <= limit * np.linalg.norm(wanted)
    assert np.linalg.norm(np.asarray(lnp.fft.ifft(there)) - z) <= 2 * limit * np.linalg.norm(z)


@pytest.mark.parametrize("length", [33, 37, 127])
def test_odd_lines_of_double_precision(length: int) -> None:
    """Products of sums and of differences."""
    z = RANDOM.normal(size=(2, length, 3)) + 1j * RANDOM.normal(size=(2, length, 3))
    with lx.enable_x64():
        found = np.asarray(lnp.fft.fft(z, axis=1)), np.asarray(lnp.fft.ifft(z, axis=1))
    for one, wanted in zip(found, (np.fft.fft(z, axis=1), np.fft.ifft(z, axis=1)), strict=True):
        assert np.linalg.norm(one - wanted) <= 2**-52 * np.log2(length) * np.linalg.norm(wanted)


@pytest.mark.parametrize("length", [8, 9, 120])
def test_real_lines(length: int) -> None:
    x = RANDOM.normal(size=(3, length)).astype(np.float32)
    spectrum = lnp.fft.rfft(x)
    np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfft(x), atol=2e-5)
    np.testing.assert_allclose(np.asarray(lnp.fft.irfft(spectrum, length)), x, atol=2e-6)


def test_axes_in_the_middle_and_batches() -> None:
    z = (RANDOM.normal(size=(3, 10, 4)) + 1j).astype(np.complex64)
    found = lx.compile(lambda z: lnp.fft.fftn(z * 2, axes=(0, 1), norm="ortho") + 1)(z)
    np.testing.assert_allclose(np.asarray(found), np.fft.fftn(z * 2, axes=(0, 1), norm="ortho") + 1, atol=2e-5)
    batched = lx.vmap(lambda line: lnp.fft.fft(line))(z[:, :, 0])
    np.testing.assert_allclose(np.asarray(batched), np.fft.fft(z[:, :, 0]), atol=2e-5)


@pytest.mark.parametrize("length", [1, 3, 8, 1000, 2**20 + 7])
def test_roots_of_unity_are_correct_to_a_unit(length: int) -> None:
    positions = np.unique(np.linspace(0, length - 1, 257).astype(np.int32))
    type = TensorType(positions.shape, complex64)
    found = np.asarray(bind("unit_root", lnp.asarray(positions), type=type, length=length))
    assert np.abs(found - np.exp(2j * np.pi * positions / length)).max() <= 1.2e-7
