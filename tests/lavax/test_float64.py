"""float64 on the device: values with its digits, gradients as its differences show them, special values as in NumPy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal

import lavax as lx
import lavax.linalg as la
import lavax.numpy as lnp
from lavax.backends.vulkan.device.device import get_device
from lavax.scipy import signal, special

Function = Callable[..., Any]

X = np.array([0.31, 0.77, 0.52])
# Functions by family, with how far the arguments X are moved into their domain.
FAMILIES: dict[str, dict[str, tuple[Function, float]]] = {
    "exponential": {
        **{name: (getattr(lnp, name), 0.0) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")},
        **{name: (getattr(lnp, name), 0.0) for name in ("sqrt", "cbrt", "sinh", "cosh", "tanh", "asinh", "atanh")},
        "acosh": (lnp.acosh, 1.0),
        "power": (lambda x: lnp.power(x, x + 1.5), 0.0),
        "logaddexp": (lambda x: lnp.logaddexp(x, 2 * x), 0.0),
        "expit": (special.expit, 0.0),
    },
    "trigonometric": {
        **{name: (getattr(lnp, name), 0.0) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinc")},
        "atan2": (lambda x: lnp.atan2(x, 1 - 2 * x), 0.0),
        "hypot": (lambda x: lnp.hypot(x, 2 * x), 0.0),
    },
    "of errors": {
        name: (getattr(special, name), 0.0) for name in ("erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri", "log_ndtr")
    },
    "special": {
        **{name: (getattr(special, name), 0.0) for name in ("lgamma", "i0", "i0e", "i1", "i1e", "logit", "entr")},
        "digamma of large numbers": (special.digamma, 7.0),
        "cumlogsumexp": (lnp.cumlogsumexp, 0.0),
    },
}


@pytest.fixture(autouse=True)
def _device_with_float64() -> None:
    if not get_device().profile.float64:
        pytest.skip("the device has no float64")


def _on_device(function: Function, *arrays: np.ndarray) -> list[np.ndarray]:
    with lx.enable_x64():
        return [np.asarray(one) for one in lx.compile(function)(*arrays)]


STEP = 1e-3
# Of a first derivative by differences of fourth order.
DIFFERENCES = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}


def _slopes(losses: Function, x: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """The derivatives of all losses along a direction, by differences."""
    found = {k: np.array(_on_device(losses, x + k * STEP * direction)) for k in DIFFERENCES}
    return np.asarray(sum(weight * found[k] for k, weight in DIFFERENCES.items()) / STEP)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_have_the_digits_of_float64(family: str) -> None:
    functions = list(FAMILIES[family].values())
    weights, direction = np.array([1.0, -0.6, 0.3]), np.array([0.5, 1.0, -0.7])

    def loss(function: Function, shift: float) -> Function:
        return lambda x: lnp.sum(weights * function(x + shift))

    losses = lx.compile(lambda x: [loss(*one)(x) for one in functions])
    gradients = _on_device(lx.compile(lambda x: [lx.grad(loss(*one))(x) for one in functions]), X)
    for name, gradient, slope in zip(FAMILIES[family], gradients, _slopes(losses, X, direction), strict=True):
        assert gradient.dtype == np.float64
        np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-9, atol=1e-11, err_msg=name)


def _matrix_losses(x: Any) -> list[Any]:
    """Of every way of taking a matrix apart; those of vectors do not depend on their signs."""
    symmetric = x @ lnp.matrix_transpose(x) + lnp.eye(4, dtype="float64")
    return [
        lnp.sum(la.cholesky(symmetric) ** 3),
        lnp.sum(la.qr(x).R ** 3),
        lnp.sum(la.solve(x, lnp.ones((4, 1), dtype="float64"))),
        la.slogdet(x).logabsdet,
        lnp.sum(la.eigh(symmetric).eigenvalues ** 3),
        lnp.sum(la.eigh(symmetric).eigenvectors[0] ** 4),
        lnp.sum(la.svd(x).S ** 3),
        lnp.sum(la.svd(x).U[1] ** 4),
    ]


def test_gradients_of_linear_algebra_have_the_digits_of_float64() -> None:
    random = np.random.default_rng(5)
    x, direction = random.normal(size=(4, 4)) + 2 * np.diag([1, 2, 3, 4]), 0.1 * random.normal(size=(4, 4))
    losses = lx.compile(_matrix_losses)
    count = len(_matrix_losses(lnp.asarray(x)))
    gradients = lx.compile(lambda v: [lx.grad(lambda u, k=k: _matrix_losses(u)[k])(v) for k in range(count)])
    for gradient, slope in zip(_on_device(gradients, x), _slopes(losses, x, direction), strict=True):
        assert gradient.dtype == np.float64
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-8)


@pytest.mark.parametrize("size", [5, 40])
def test_matrices_of_float64_are_taken_apart_with_its_digits(size: int) -> None:
    """Of 40 rows eigenvalues and singular values are computed by several kernels, of 5 by one."""
    x = np.random.default_rng(size).normal(size=(2, size, size))
    symmetric = x + np.swapaxes(x, -1, -2)
    values, vectors, u, s, vh = _on_device(lambda a, b: [*la.eigh(b), *la.svd(a)], x, symmetric)
    unit = 64 * size * np.finfo(np.float64).eps
    np.testing.assert_allclose(vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2), symmetric, atol=unit)
    np.testing.assert_allclose(u * s[..., None, :] @ vh, x, atol=unit)
    for orthogonal in (vectors, u, vh):
        product = orthogonal @ np.swapaxes(orthogonal, -1, -2)
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(size), product.shape), atol=unit)


SPECTRA: dict[str, Callable[[Any, Any], Any]] = {
    "stft": lambda of, x: of.stft(x, nperseg=16),
    "istft": lambda of, x: of.istft(of.stft(x, nperseg=16)[2], nperseg=16),
    "welch": lambda of, x: of.welch(x, nperseg=16),
    "csd": lambda of, x: of.csd(x, x[::-1], nperseg=16),
    "periodogram": lambda of, x: of.periodogram(x, window="hamming"),
    "spectrogram": lambda of, x: of.spectrogram(x, nperseg=16),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_have_windows_of_float64(name: str) -> None:
    x = np.random.default_rng(2).normal(size=64)
    function = SPECTRA[name]
    found = _on_device(lambda x: function(signal, x), x)
    for ours, right in zip(found, function(scipy.signal, x), strict=True):
        assert ours.dtype == right.dtype
        np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3"])
def test_images_are_resized_with_weights_of_float64(method: str) -> None:
    """Weights of a pixel add up to 1, and float32's to 1 and some 1e-8."""
    lines = np.arange(7.0) / 3
    (found,) = _on_device(lambda x: (lx.image.resize(x, (3, 13), method),), np.broadcast_to(lines, (5, 7)) * 0 + 1 / 3)
    np.testing.assert_allclose(found, 1 / 3, rtol=1e-14)
    (slope,) = _on_device(lambda x: (lx.image.resize(x, (13,), "linear"),), lines)
    np.testing.assert_allclose(slope[2:-2], ((np.arange(13) + 0.5) * 7 / 13 - 0.5)[2:-2] / 3, rtol=1e-14)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e308, 1e-310])
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "x * 0": lambda n, x: x * 0.0,
    "x - x": lambda n, x: x - x,
    "0 / x": lambda n, x: 0.0 / x,
    "x / 0": lambda n, x: x / 0.0,
    "x / x": lambda n, x: x / x,
    "1 / x": lambda n, x: 1.0 / x,
    "2 x - x": lambda n, x: (x + x) - x,
    "x != x": lambda n, x: x != x,
    "maximum": lambda n, x: n.maximum(x, 0.5),
    "ceil": lambda n, x: n.ceil(x - 0.5),
}


def test_special_values_are_those_of_numpy() -> None:
    found = _on_device(lambda x: [function(lnp, x) for function in ARITHMETIC.values()], SPECIAL)
    for (name, function), ours in zip(ARITHMETIC.items(), found, strict=True):
        with np.errstate(all="ignore"):
            expected = function(np, SPECIAL)
        np.testing.assert_array_equal(ours, expected, err_msg=name)
        if expected.dtype.kind == "f":
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(ours[numbers]), np.signbit(expected[numbers]), err_msg=name)
