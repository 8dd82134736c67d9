"""Functions of complex numbers on the device: values, branch cuts and special values against NumPy."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

RANDOM = np.random.default_rng(3)
UNARY = [
    "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
    "asinh", "acosh", "atanh", "abs", "conj", "angle", "real", "imag", "square", "reciprocal", "sign",
]  # fmt: skip


def _samples() -> np.ndarray:
    """Numbers near the origin, near the unit circle, far away, and with parts of different sizes."""
    count = 200
    angles = np.exp(1j * RANDOM.uniform(-np.pi, np.pi, (3, count)))
    near = RANDOM.normal(size=count) + 1j * RANDOM.normal(size=count)
    wide = RANDOM.uniform(-90, 90, count) + 1j * RANDOM.uniform(-10, 10, count)
    spread = 10 ** RANDOM.uniform(-6, 6, count)
    points = [near, angles[0], angles[1] * spread, wide, 1 + 1e-3 * near, near.real + 1e-6j * near.imag]
    return np.concatenate(points).astype(np.complex64)


Z = _samples()
W = np.roll(Z, 77)


def _close(got: np.ndarray, wanted: np.ndarray, size: float = 4e-7) -> None:
    """Equal to a few units in the last place of the length; results beyond float32 are not asked for."""
    held = (np.abs(wanted) < 1e38) & (np.abs(wanted) > 1e-30)
    assert held.sum() > 100
    error = np.abs(got[held] - wanted[held]) / np.abs(wanted[held])
    assert error.max() <= size, (Z[held][error.argmax()], error.max())


@pytest.mark.parametrize("name", UNARY)
def test_functions_follow_numpy_in_complex128(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(Z.astype(np.complex128))
    if name in ("real", "imag", "angle"):
        np.testing.assert_allclose(np.asarray(getattr(lnp, name)(Z)), wanted, rtol=3e-7)
        return
    _close(np.asarray(getattr(lnp, name)(Z)), wanted)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_follows_numpy_in_complex128(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(Z.astype(np.complex128), W.astype(np.complex128))
    _close(np.asarray(getattr(lnp, name)(Z, W)), wanted)


def test_powers() -> None:
    z, w = Z[:200], W[400:600] * np.float32(0.1)
    w = w / np.maximum(1, np.abs(w)).astype(np.float32)
    wanted = z.astype(np.complex128) ** w
    np.testing.assert_allclose(np.asarray(lnp.asarray(z) ** w), wanted, rtol=2e-6)
    np.testing.assert_allclose(np.asarray(lnp.asarray(z) ** 3), z.astype(np.complex128) ** 3, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lnp.asarray(z) ** -0.5), z.astype(np.complex128) ** -0.5, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(2.0 ** lnp.asarray(z)), 2 ** z.astype(np.complex128), rtol=1e-6)
    assert complex(lnp.power(0j, 2 + 1j)) == 0 and complex(lnp.power(0j, 0j)) == 1


def test_logarithms_of_sums() -> None:
    """log(e^z + e^w) without overflow, its angle in [-π, π]."""
    z, w = 3 * Z[:200], 3 * W[:200]
    wanted = np.log(np.exp(z.astype(np.complex128)) + np.exp(w.astype(np.complex128)))
    np.testing.assert_allclose(np.asarray(lnp.logaddexp(z, w)), wanted, rtol=4e-6, atol=4e-6)
    wanted = np.log(2 ** z.astype(np.complex128) + 2 ** w.astype(np.complex128)) / np.log(2)
    np.testing.assert_allclose(np.asarray(lnp.logaddexp2(z, w)), wanted, rtol=4e-6, atol=4e-6)
    far = np.asarray([400 + 3j, 400 + 3.1j, -np.inf], np.complex64)
    np.testing.assert_allclose(np.asarray(lnp.logaddexp(far, far))[:2], far[:2] + np.log(2), rtol=1e-6)


def test_angles_and_whole_numbers() -> None:
    z, w = Z[:200], W[:200]
    wide, other = z.astype(np.complex128), w.astype(np.complex128)
    wanted = -1j * np.log((other + 1j * wide) / np.sqrt(wide**2 + other**2))
    np.testing.assert_allclose(np.asarray(lnp.arctan2(z, w)), wanted, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(np.asarray(lnp.rint(z)), np.rint(z))


_ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
SPECIAL = np.empty(len(_ENDS) ** 2, np.complex64)
SPECIAL.real, SPECIAL.imag = zip(*itertools.product(_ENDS, _ENDS), strict=True)

# Where C99 leaves a sign open, or NumPy differs from the array API standard: (function, part of the point) -> reason.
_OPEN_SIGNS = {"exp", "sinh", "cosh", "tanh", "sin", "cos", "tan"}
# C99, Annex G: casinh and catanh of NaN + ∞i have an infinity and a zero of either sign; asin and atan are turned by i.
_OPEN_BESIDE_NAN = {"asin", "atan"}


def _same(got: np.ndarray, wanted: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Equal, both NaN, or close; of zeros and infinities the sign counts where `signs` says so."""
    alike = (np.isnan(got) & np.isnan(wanted)) | (np.abs(got) == np.abs(wanted)) | (np.abs(got - wanted) <= 2e-6)
    return alike & (~signs | np.isnan(wanted) | (np.signbit(got) == np.signbit(wanted)))


@pytest.mark.parametrize("name", [name for name in UNARY[:18] if name not in ("expm1",)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_and_branch_cuts_are_those_of_c99(name: str) -> None:
    wanted = np.asarray(getattr(np, name)(SPECIAL.astype(np.complex128)))
    got = np.asarray(getattr(lnp, name)(SPECIAL)).astype(wanted.dtype)
    is_open = ~np.isfinite(SPECIAL) & (name in _OPEN_SIGNS)
    is_open |= np.isinf(SPECIAL.real) & np.isnan(SPECIAL.imag) & (name in _OPEN_BESIDE_NAN)
    for part in ("real", "imag"):
        same = _same(getattr(got, part), getattr(wanted, part), ~is_open)
        assert same.all(), (SPECIAL[~same], got[~same], wanted[~same])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", [-1000, -399, -120, -64, -51, -49, -30])
def test_inverse_tangents_beside_their_poles(dtype: str, exponent: int) -> None:
    """At 1 ± 2ⁿ·i, whose square vanishes for small n, and not in NumPy."""
    limits = np.finfo(dtype)
    if 2.0**exponent < limits.tiny:
        pytest.skip("the dtype has no such number")
    z = np.array([complex(one, other * 2.0**exponent) for one in (1, -1) for other in (1, -1)], dtype)
    with lx.enable_x64(dtype == "complex128"):
        for name, at in (("arctanh", z), ("arctan", z.imag + 1j * z.real)):
            wanted = getattr(np, name)(at.astype(np.complex128))
            got = np.asarray(getattr(lnp, name)(at.astype(dtype)))
            assert (np.abs(got - wanted) <= 2 * limits.eps * np.abs(wanted)).all(), name


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_signs_of_extreme_numbers(dtype: str) -> None:
    """Those of NumPy, but NaN beside NaN, as the array API standard wants, and of lengths that overflow."""
    limits = np.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, limits.tiny, -limits.tiny, limits.max / 2, -limits.max / 2]
    z = np.array([complex(x, y) for x in parts for y in parts], dtype)
    wanted = np.where(np.isnan(z), complex(np.nan, np.nan), np.sign(z.astype(np.complex128)))
    with lx.enable_x64(dtype == "complex128"):
        got = np.asarray(lnp.sign(z))
        huge = np.asarray(lnp.sign(np.array([complex(limits.max, -limits.max)], dtype)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2 * limits.eps)
    np.testing.assert_allclose(huge, [(1 - 1j) / np.sqrt(2)], rtol=0, atol=2 * limits.eps)


# The array API standard, expm1: NumPy gives NaN for these.
@pytest.mark.parametrize(
    ("point", "wanted"),
    [
        (complex(np.inf, 0), complex(np.inf, 0)),
        (complex(-np.inf, 1), complex(-1, 0)),
        (complex(-np.inf, np.inf), complex(-1, 0)),
        (complex(-np.inf, np.nan), complex(-1, 0)),
        (complex(np.nan, 0), complex(np.nan, 0)),
        (complex(np.inf, np.inf), complex(np.inf, np.nan)),
        (complex(1, np.inf), complex(np.nan, np.nan)),
    ],
)
def test_special_values_of_expm1(point: complex, wanted: complex) -> None:
    np.testing.assert_array_equal(np.asarray(lnp.expm1(np.complex64(point))), np.complex64(wanted))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_truths_of_special_values() -> None:
    for name in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(np.asarray(getattr(lnp, name)(SPECIAL)), getattr(np, name)(SPECIAL))
    np.testing.assert_array_equal(np.asarray(lnp.asarray(SPECIAL) == SPECIAL), SPECIAL == SPECIAL)
    np.testing.assert_array_equal(np.asarray(lnp.asarray(SPECIAL) != SPECIAL), SPECIAL != SPECIAL)
