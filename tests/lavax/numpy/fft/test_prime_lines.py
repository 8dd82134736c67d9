"""Transforms of lines of a prime number of points as cyclic convolutions of one number fewer."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.graph import graph_of
from lavax.ir.interpreter import interpret
from lavax.ir.types import float32, float64
from lavax.passes.complex_parts.prime_lines import is_suited, powers
from lavax.passes.numerics.primes import generator_of

RANDOM = np.random.default_rng(8)


def _complex(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


def test_lengths() -> None:
    suited = {n for n in range(1, 160) if is_suited(n, float32, 31)}
    assert suited == {37, 41, 53, 61, 73, 89, 97, 101, 109, 113, 137, 157}
    assert is_suited(65537, float32, 31)
    assert is_suited(127, float64, 31) and not is_suited(127, float32, 31)
    assert not is_suited(163841, float32, 31)  # products beyond 32 bits
    assert not is_suited(149, float32, 31)  # 4·37


@pytest.mark.parametrize("prime", [37, 113, 65537, 92569])
def test_powers_run_through_all_numbers(prime: int) -> None:
    base = generator_of(prime)
    (found,) = interpret(graph_of((), (powers(base, prime),)))
    expected = np.ones(prime - 1, np.int64)
    for place in range(1, prime - 1):
        expected[place] = expected[place - 1] * base % prime
    np.testing.assert_array_equal(found, expected)
    assert len(set(found.tolist())) == prime - 1


# Even and odd numbers of lines; a whole axis in front; a prime times a small number; two primes.
@pytest.mark.parametrize(
    ("shape", "axis"), [((151, 109), 1), ((130, 257), 1), ((1009, 17), 0), ((73, 226), 1), ((1, 65537), 1)]
)
@pytest.mark.parametrize("inverse", [False, True])
def test_values(shape: tuple[int, ...], axis: int, inverse: bool) -> None:
    z = _complex(*shape)
    ours, theirs = (lnp.fft.ifft, np.fft.ifft) if inverse else (lnp.fft.fft, np.fft.fft)
    expected = theirs(z.astype(np.complex128) * 2, axis=axis)
    found = lx.compile(lambda z: ours(z * 2, axis=axis))(z)
    limit = 2**-24 * np.log2(shape[axis])  # half of what is promised
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


@pytest.mark.parametrize("place", [0, 1, 108])
def test_a_pulse_is_as_exact_as_noise(place: int) -> None:
    z = np.zeros((160, 109), np.complex64)
    z[:, place] = 1
    expected = np.fft.fft(z.astype(np.complex128))
    found = np.asarray(lnp.fft.fft(z))
    assert np.linalg.norm(found - expected) <= 2**-24 * np.log2(109) * np.linalg.norm(expected)


def test_real_lines_and_gradients_in_the_middle() -> None:
    """Of Σ |w ⊙ rfft(2x)|²: 4·Σ|w|²-weighted sums, by NumPy in float64."""
    x = RANDOM.normal(size=(160, 109)).astype(np.float32)
    w = RANDOM.normal(size=55).astype(np.float32)
    found = np.asarray(lx.grad(lambda x: lnp.sum(lnp.abs(w * lnp.fft.rfft(2 * x)) ** 2))(x))
    matrix = np.fft.rfft(np.eye(109))
    spectra = 2 * x.astype(np.float64) @ matrix
    expected = 4 * ((spectra * w.astype(np.float64) ** 2) @ matrix.conj().T).real
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
