"""Fourier transforms of float64 and complex128 on the device, against SciPy's of long doubles."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.types import TensorType, complex128
from lavax.tracer import bind

RANDOM = np.random.default_rng(12)


def _complex(*shape: int) -> np.ndarray:
    return np.asarray(RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape))


def _error(found: Any, wanted: np.ndarray) -> float:
    return float(np.linalg.norm((np.asarray(found) - wanted).astype(np.clongdouble)) / np.linalg.norm(wanted))


# Lanes along memory, and across it; registers of one line and of two, of lines of odd length; two steps; a prime as a
# convolution of one number fewer, by Bluestein's, and by a product.
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *(((3, 256), 1), ((2, 1024), 1), ((2, 64, 6), 1), ((3, 50, 20), 1), ((5, 17), 1), ((6, 30), 0)),
        *(((3, 2187), 1), ((2, 4096), 1), ((135, 127), 1), ((2, 131), 1), ((2, 37, 3), 1), ((1, 1 << 17), 1)),
    ],
)
def test_the_error_is_a_few_units_of_the_norm(shape: tuple[int, ...], axis: int) -> None:
    z, limit = _complex(*shape), 2**-53 * np.log2(shape[axis])  # half of what is promised
    wide = z.astype(np.clongdouble)
    with lx.enable_x64():
        found = lx.compile(lambda z: lnp.fft.fft(z * 2, axis=axis))(z)
        assert _error(found, scipy.fft.fft(wide * 2, axis=axis)) <= limit
        assert _error(lnp.fft.ifft(z, axis=axis), scipy.fft.ifft(wide, axis=axis)) <= limit


@pytest.mark.parametrize("length", [2, 50, 63, 128, 1000, 8192, 2 * 131])
def test_real_lines(length: int) -> None:
    x, limit = RANDOM.normal(size=(3, length)), 2**-53 * max(np.log2(length), 2)
    spectrum = scipy.fft.rfft(x.astype(np.longdouble))
    with lx.enable_x64():
        assert _error(lnp.fft.rfft(x), spectrum) <= limit
        assert _error(lnp.fft.irfft(spectrum.astype(np.complex128), length), x.astype(np.longdouble)) <= limit


def test_gradients_in_the_middle_of_a_graph() -> None:
    """Of 3·Σ Re(v ⊙ F(2z)): the transpose of F is F."""
    z, v = _complex(2, 96), _complex(2, 96)
    with lx.enable_x64():
        found = lx.grad(lambda z: 3 * lnp.sum((v * lnp.fft.fft(2 * z)).real))(z)
    assert _error(found, 6 * scipy.fft.fft(v.astype(np.clongdouble))) <= 2**-52 * np.log2(96)


@pytest.mark.parametrize("function", [lnp.fft.fft2, lnp.fft.ifft2])
def test_two_axes_and_batches(function: Callable[..., Any]) -> None:
    z = _complex(3, 60, 32)
    wanted = getattr(scipy.fft, function.__name__)(z.astype(np.clongdouble))
    with lx.enable_x64():
        assert _error(lx.vmap(function)(z), wanted) <= 2**-53 * np.log2(60 * 32)


@pytest.mark.parametrize("length", [1, 7, 96, 1021, 1 << 20])
def test_roots_are_those_of_long_doubles(length: int) -> None:
    """Those beside each eighth of a turn, and some others. The angle is rounded twice, the result once or twice."""
    eighths = [(part * length // 8 + beside) % length for part in range(8) for beside in (-1, 0, 1, 2)]
    positions = np.array([*eighths, *RANDOM.integers(0, length, 1000)], np.int32)
    type = TensorType(positions.shape, complex128)
    with lx.enable_x64():
        found = np.asarray(bind("unit_root", lnp.asarray(positions), type=type, length=length))
    angle = 8 * np.arctan(np.longdouble(1)) * positions / length
    assert np.abs(found - (np.cos(angle) + 1j * np.sin(angle))).max() <= 2.5 * 2**-53


@pytest.mark.parametrize("length", [262, 499, 5 * 131])
def test_no_kernel_reduces_angles(length: int) -> None:
    """A driver compiles the reduction of any angle in float64 for half a second, in each kernel."""
    with lx.enable_x64():
        text = lx.compile(lnp.fft.fft).lower(lx.ShapeDtype((3, length), "complex128")).as_text("glsl")
    assert "lx_unit_root" in text and "lx_reduce_angle" not in text
