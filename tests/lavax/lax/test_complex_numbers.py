"""Complex numbers and Fourier transforms in lavax.lax, and complex draws."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax

pytestmark = pytest.mark.usefixtures("reference_backend")

Z = np.array([1 + 2j, 3 - 1j], np.complex64)
RANDOM = np.random.default_rng(5)
X = np.arange(12, dtype=np.float32).reshape(2, 6)


def sample(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


def test_strict_functions_take_complex_numbers() -> None:
    np.testing.assert_allclose(np.asarray(lax.mul(Z, 2.0)), Z * 2)
    np.testing.assert_allclose(np.asarray(lax.add(Z, 1j)), Z + 1j)
    np.testing.assert_allclose(np.asarray(lax.exp(Z)), np.exp(Z), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lax.integer_pow(Z, 3)), Z**3, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lax.pow(Z, 2)), Z**2, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lax.reduce_sum(Z, (0,))), Z.sum())
    np.testing.assert_array_equal(np.asarray(lax.eq(Z, Z)), [True, True])
    made = lax.complex(X[0], X[1])
    np.testing.assert_array_equal(np.asarray(made), X[0] + 1j * X[1])
    np.testing.assert_array_equal(np.asarray(lax.imag(made)), X[1])


def test_quotients_and_extrema() -> None:
    """Their order is NumPy's; lax.cummax and its like are of pairs, joined."""
    w = Z[::-1] * 1j
    line = np.array([1 + 2j, 1 + 3j, 0.5 - 9j, 2, 1 + 4j], np.complex64)
    np.testing.assert_allclose(np.asarray(lax.div(Z, w)), Z / w, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lax.exp2(Z)), np.exp2(Z), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(lax.max(Z, w)), np.maximum(Z, w))
    np.testing.assert_array_equal(np.asarray(lax.min(Z, w)), np.minimum(Z, w))
    np.testing.assert_array_equal(np.asarray(lax.reduce_max(line, (0,))), line.max())
    np.testing.assert_array_equal(np.asarray(lax.reduce_min(line, (0,))), line.min())
    np.testing.assert_array_equal(np.asarray(lax.cummax(line)), np.maximum.accumulate(line))
    np.testing.assert_array_equal(np.asarray(lax.cummin(line, reverse=True)), np.minimum.accumulate(line[::-1])[::-1])
    wanted = np.log(np.cumsum(np.exp(line.astype(np.complex128))))
    np.testing.assert_allclose(np.asarray(lax.cumlogsumexp(line)), wanted, atol=4e-6)  # the last sum cancels


def test_gradients_of_convolutions() -> None:
    """Of 2·Σ Re(w·conv(3x, k)), with a border, a stride and steps in the window."""
    x, kernel = sample(2, 2, 9), sample(3, 2, 2)
    settings = {"window_strides": (2,), "padding": [(1, -1)], "rhs_dilation": (2,)}
    weights = sample(*lax.conv_general_dilated(x, kernel, **settings).shape)

    def loss(x: Any, kernel: Any) -> Any:
        return 2 * lnp.sum((weights * lax.conv_general_dilated(3 * x, kernel, **settings)).real)

    gradients = lx.grad(loss, argnums=(0, 1))(x, kernel)
    for place, direction in enumerate((sample(*x.shape), sample(*kernel.shape))):
        moved = [x, kernel]
        moved[place] = direction  # the loss is linear in each
        found = np.sum(np.asarray(gradients[place]) * direction).real
        np.testing.assert_allclose(found, float(loss(*moved)), rtol=1e-5)


def test_transforms_by_their_kind() -> None:
    np.testing.assert_allclose(np.asarray(lax.fft(Z, "fft", (2,))), np.fft.fft(Z), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lax.fft(Z, lax.FftType.IFFT, (2,))), np.fft.ifft(Z), rtol=1e-6)
    spectrum = lax.fft(X, lax.FftType.RFFT, (2, 6))
    np.testing.assert_allclose(np.asarray(spectrum), np.fft.rfft2(X), atol=1e-5)
    np.testing.assert_allclose(np.asarray(lax.fft(spectrum, "IRFFT", (2, 6))), X, atol=1e-5)


def test_complex_draws_are_those_of_jax() -> None:
    # jax 0.10.0: jax.random.normal(jax.random.key(1), (2,), "complex64")
    wanted = [0.3761365 - 0.1724775j, -0.51125026 + 0.0868823j]
    drawn = lx.random.normal(lx.random.key(1), (2,), "complex64")
    assert drawn.dtype == np.complex64
    np.testing.assert_allclose(np.asarray(drawn), wanted, rtol=1e-5)
    many = np.asarray(lx.random.normal(lx.random.key(3), (4000,), "complex64"))
    assert abs(np.mean(np.abs(many) ** 2) - 1) < 0.1 and abs(np.mean(many**2)) < 0.1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.lt(Z, Z), lx.DtypeError, "lax.lt: operands are"),
        (lambda: lax.add(X, 1j), lx.DtypeError, "lax.add: operands have one dtype"),
        (lambda: lax.complex(Z, Z), lx.DtypeError, "lax.complex: operands are floats"),
        (lambda: lax.fft(Z, "fft", (3,)), lx.ShapeError, r"lax.fft: FFT of c64\[2\] does not have the lengths \(3,\)"),
        (lambda: lax.fft(Z, "dct", (2,)), ValueError, "fft_type is one of FFT, IFFT"),
        (lambda: lax.fft(Z, "rfft", (2,)), lx.DtypeError, "rfftn takes real numbers"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
