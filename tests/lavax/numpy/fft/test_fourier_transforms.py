"""lavax.numpy.fft against NumPy, with the interpreter in place of a device: values, arguments, derivatives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

RANDOM = np.random.default_rng(11)
OF_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
TO_REAL = ("irfft", "hfft", "irfftn", "irfft2")


def sample(name: str, shape: tuple[int, ...]) -> np.ndarray:
    x = RANDOM.normal(size=shape).astype(np.float32)
    return x if name in OF_REAL else (x + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


def close(found: Any, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape and found.dtype == (np.float32 if wanted.dtype.kind == "f" else np.complex64)
    np.testing.assert_allclose(np.asarray(found), wanted, atol=3e-6 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_lines_of_any_length(name: str, norm: Any) -> None:
    for shape, axis in (((1,), -1), ((2,), 0), ((7,), -1), ((3, 8, 2), 1), ((12, 2), 0)):
        x = sample(name, shape)
        for n in (None, shape[axis] + 2, max(1, shape[axis] - 1), 1):
            if n is None and shape[axis] == 1 and name in TO_REAL:
                continue
            close(getattr(lnp.fft, name)(x, n, axis, norm), getattr(np.fft, name)(x, n, axis, norm))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_several_axes(name: str) -> None:
    x = sample(name, (4, 5, 6))
    options: list[dict[str, Any]] = [{}, {"axes": (0, 2)}, {"s": (3, 7), "axes": (1, 0)}, {"norm": "ortho"}]
    for given in options:
        close(getattr(lnp.fft, name)(x, **given), getattr(np.fft, name)(x, **given))


def test_frequencies_and_shifts() -> None:
    for n in (1, 4, 5):
        close(lnp.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1))
        close(lnp.fft.rfftfreq(n, 0.1), np.fft.rfftfreq(n, 0.1))
    x = RANDOM.normal(size=(4, 5)).astype(np.float32)
    for axes in (None, 1, (0, 1)):
        np.testing.assert_array_equal(np.asarray(lnp.fft.fftshift(x, axes)), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(np.asarray(lnp.fft.ifftshift(x, axes)), np.fft.ifftshift(x, axes))


def test_dtypes() -> None:
    assert lnp.fft.fft(np.arange(4)).dtype == np.complex64
    assert lnp.fft.rfft(np.ones(4, np.float16)).dtype == np.complex64
    assert lnp.fft.irfft(np.ones(4, bool)).dtype == np.float32
    with lx.enable_x64():
        x = RANDOM.normal(size=6)
        np.testing.assert_allclose(np.asarray(lnp.fft.rfft(x)), np.fft.rfft(x), rtol=1e-13)
        assert lnp.fft.fft(lnp.asarray(x)).dtype == np.complex128


def test_parts_that_no_real_line_has_are_ignored() -> None:
    spectrum = sample("irfft", (5,))
    for n in (8, 9):
        clean = spectrum.copy()
        clean[0] = clean[0].real
        if n == 8:
            clean[4] = clean[4].real
        close(lnp.fft.irfft(spectrum, n), np.fft.irfft(clean, n))


def test_no_number_in_a_part_that_no_real_line_has_is_ignored() -> None:
    """Whatever the spectrum is scaled by: part by part."""
    for n in (8, 9):
        spectrum = sample("irfft", (5, 3))
        spectrum.imag[0], spectrum.imag[4] = np.nan, np.inf if n == 8 else 1
        clean = spectrum.copy()
        clean.imag[0], clean.imag[4] = 0, 0 if n == 8 else 1
        for norm in (None, "ortho", "forward"):
            close(lnp.fft.irfft(spectrum, n, 0, norm), np.fft.irfft(clean, n, 0, norm))


X, Z, W = sample("rfft", (2, 9)), sample("fft", (2, 9)), sample("fft", (2, 9))


def test_a_transform_is_its_own_transpose() -> None:
    (found,) = lx.linear_transpose(lnp.fft.fft, Z)(W)
    close(found, np.fft.fft(W).astype(np.complex64))
    text = lx.compile(lambda z: lx.vjp(lnp.fft.fft, z)[1](W)[0]).lower(Z).as_text()
    assert text.count("fft(") == 1 and "dot" not in text
    (found,) = lx.linear_transpose(lnp.fft.ifft, Z)(W)
    close(found, np.fft.ifft(W).astype(np.complex64))


def test_gradients_in_the_middle_of_a_graph() -> None:
    """Of Σ|w·F(z²)|², with Re(Σ gradient·t) as the change along t; first and second order."""

    def power(z: Any) -> Any:
        return lnp.sum(lnp.abs(lnp.fft.fft(z * z) * W) ** 2)

    wanted = 2 * Z * np.fft.fft(np.abs(W) ** 2 * 2 * np.conj(np.fft.fft(Z * Z)))
    close(lx.grad(power)(Z), wanted.astype(np.complex64))
    step = 1e-3
    along = (float(power(Z + step * W)) - float(power(Z - step * W))) / (2 * step)
    _, tangent = lx.jvp(power, (Z,), (W,))
    np.testing.assert_allclose(float(tangent), along, rtol=1e-2)
    np.testing.assert_allclose(float(tangent), np.sum(wanted * W).real, rtol=1e-4)


def test_gradients_of_real_transforms() -> None:
    for n in (8, 9):
        x = X[:, :n]

        def power(x: Any, n: int = n) -> Any:
            return lnp.sum(lnp.abs(lnp.fft.rfft(x, n)) ** 2)

        lines = np.fft.rfft(x)
        wanted = 2 * np.real(np.fft.ifft(np.pad(lines, [(0, 0), (0, n - lines.shape[-1])])) * n)
        close(lx.grad(power)(x), wanted.astype(np.float32))
        matrix = np.asarray(lx.jacrev(lambda s, n=n: lnp.fft.irfft(lnp.fft.rfft(s), n))(x[0]))
        np.testing.assert_allclose(matrix, np.eye(n), atol=1e-5)


# From jax 0.10.0 on a CPU: the gradient of Σ|irfft(rfft(x)·k²)|³ for x = cos(j²) with 6 numbers, and its own
# derivative along sin(j).
RECORDED = (
    [-104.309, 80.556, -85.6258, 113.865, -173.161, 168.676],
    [38.4831, -11.5735, 22.5849, -8.58015, 17.5169, -58.4312],
)


def _energy(m: Any) -> Callable[[Any], Any]:
    return lambda x: m.sum(m.abs(m.fft.irfft(m.fft.rfft(x) * np.arange(4, dtype=np.float32) ** 2)) ** 3)


LINE, DIRECTION = np.cos(np.arange(6.0) ** 2).astype("f"), np.sin(np.arange(6.0)).astype("f")


def test_first_and_second_derivatives_are_those_of_jax() -> None:
    gradient, change = lx.jvp(lx.grad(_energy(lnp)), (LINE,), (DIRECTION,))
    np.testing.assert_allclose(np.asarray(gradient), RECORDED[0], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(np.asarray(change), RECORDED[1], rtol=1e-3, atol=1e-2)


def test_jax_still_gives_what_is_recorded() -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of derivatives")
    gradient, change = jax.jvp(jax.grad(_energy(jax.numpy)), (LINE,), (DIRECTION,))
    np.testing.assert_allclose(np.asarray(gradient), RECORDED[0], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(np.asarray(change), RECORDED[1], rtol=1e-3, atol=1e-2)


def test_vmap() -> None:
    close(lx.vmap(lambda z: lnp.fft.fft(z, axis=0), in_axes=1, out_axes=1)(Z), np.fft.fft(Z, axis=0).astype("c8"))
    close(lx.vmap(lnp.fft.rfft)(X), np.fft.rfft(X).astype("c8"))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lnp.fft.fft(Z, 0), lx.ShapeError, "fft: a transform has at least one point, got n=0"),
        (lambda: lnp.fft.fft(Z, axis=2), lx.AxisError, "fft: axis 2 is not an axis of c64"),
        (lambda: lnp.fft.fft(Z, norm="unit"), ValueError, "fft: norm must be"),
        (lambda: lnp.fft.hfft(Z, norm="unit"), ValueError, "hfft: norm must be"),
        (lambda: lnp.fft.rfft(Z), lx.DtypeError, r"rfft takes real numbers, got c64\[2,9\]"),
        (lambda: lnp.fft.fftn(Z, s=(1, 2), axes=(0,)), lx.ShapeError, "2 lengths for 1 axes"),
        (lambda: lnp.fft.fftn(Z, axes=(0, 0)), lx.ShapeError, "twice"),
        (lambda: lnp.fft.fft(Z[:, :0]), lx.ShapeError, "at least one point"),
        (lambda: lnp.fft.irfft(Z[:, :1]), lx.ShapeError, "at least one point"),
        (lambda: lnp.fft.fftfreq(0), lx.ShapeError, "fftfreq: a transform has at least one point"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("length", [-1, 0])
def test_lengths_along_one_axis_are_positive(length: int) -> None:
    """-1 is the array's own length in `s` alone."""
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        with pytest.raises(lx.ShapeError, match=f"{name}: a transform has at least one point, got n={length}"):
            getattr(lnp.fft, name)(np.ones(4, "f"), length)
    with pytest.raises(lx.ShapeError, match=f"dct: a transform has at least one point, got n={length}"):
        lx.scipy.fft.dct(np.ones(4, "f"), n=length)


def test_one_length_and_one_axis() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("f")
    np.testing.assert_allclose(np.asarray(lnp.fft.fftn(x, 5, 0)), np.fft.fft(x, 5, 0), atol=1e-5)
    found = lnp.fft.rfftn(x, s=[5, 3], axes=[1, 0])
    np.testing.assert_allclose(np.asarray(found), np.fft.rfftn(x, [5, 3], [1, 0]), atol=1e-5)
    np.testing.assert_allclose(np.asarray(lx.scipy.fft.dctn(x, 2, 5)), scipy.fft.dctn(x, 2, 5), atol=1e-5)
    with pytest.raises(lx.DtypeError, match=r"fftn: axis must be an integer, got 0\.5 of type float"):
        lnp.fft.fftn(x, axes=0.5)  # type: ignore[arg-type]


def test_an_axis_that_is_named_twice_is_shifted_twice() -> None:
    x = np.arange(10).reshape(2, 5)
    for name in ("fftshift", "ifftshift"):
        for axes in ((1, 1), (1, -1, 0), [0, 1]):
            np.testing.assert_array_equal(np.asarray(getattr(lnp.fft, name)(x, axes)), getattr(np.fft, name)(x, axes))
