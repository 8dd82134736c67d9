"""Dawson's, Faddeeva's, the Fresnel integrals and Owen's T against SciPy's, and their derivatives.

Tolerances are what the argument's rounding makes of a value (8 times), and some units in the last place.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special as theirs

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import special

RANDOM = np.random.default_rng(7)
INF, NAN = np.inf, np.nan
SIGNS = RANDOM.choice([-1.0, 1.0], 600)
REAL = SIGNS * 10.0 ** RANDOM.uniform(-7, 5, 600)
EDGES = np.array([INF, -INF, NAN, 0.0, -0.0, 0.25, 100.0, 1.0, -1.0])
DTYPES = ("float32", "float64")


def _given(numbers: np.ndarray, dtype: str) -> tuple[lx.Array, np.ndarray]:
    """Numbers as the dtype holds them, and these exactly."""
    held = numbers.astype(dtype)
    return lnp.array(held, dtype=dtype), held.astype(np.float64)


def _check(found: Any, wanted: np.ndarray, moved: np.ndarray | float, dtype: str, ulps: float = 16) -> None:
    """`moved`: what a relative change of the argument by 1 would change."""
    eps = float(np.finfo(dtype).eps)
    assert found.dtype == dtype
    allowed = eps * (ulps * np.abs(wanted) + 8 * np.abs(moved))
    differences = np.abs(np.asarray(found, np.float64) - wanted)
    same = np.isnan(wanted) & np.isnan(found) | (np.asarray(found, np.float64) == wanted)
    assert np.all(same | (differences <= allowed)), np.max((differences / allowed)[~same])


@pytest.mark.parametrize("dtype", DTYPES)
def test_dawson(dtype: str) -> None:
    x, exact = _given(np.concatenate([REAL, np.linspace(-7, 7, 200), EDGES]), dtype)
    wanted = theirs.dawsn(exact)
    with np.errstate(invalid="ignore"):
        slope = np.nan_to_num(exact * (1 - 2 * exact * wanted))
    _check(special.dawsn(x), wanted, slope, dtype, 64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fresnel(dtype: str) -> None:
    x, exact = _given(np.concatenate([REAL, np.linspace(-7, 7, 200), EDGES]), dtype)
    moved = np.where(np.abs(exact) < 0.9, 0.0, np.minimum(np.abs(exact), 1.0 / np.maximum(np.abs(exact), 1e-9) / 1e-9))
    for found, wanted in zip(special.fresnel(x), theirs.fresnel(exact), strict=True):
        _check(found, wanted, np.nan_to_num(moved), dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_faddeeva(dtype: str) -> None:
    part = "float32" if dtype == "complex64" else "float64"
    z = RANDOM.normal(size=600) * 3 + 1j * RANDOM.normal(size=600) * 10.0 ** RANDOM.uniform(-6, 0.3, 600)
    held = z.astype(dtype)
    found, wanted = special.wofz(lnp.array(held, dtype=dtype)), theirs.wofz(held.astype(complex))
    assert found.dtype == dtype
    derivative = -2 * held.astype(complex) * wanted + 2j / math.sqrt(math.pi)
    allowed = np.finfo(part).eps * (32 * (np.abs(wanted) + 1.0) + 8 * np.abs(derivative * held))
    assert np.all(np.abs(np.asarray(found) - wanted) <= allowed)
    np.testing.assert_allclose(special.wofz(np.float32(0.5)), theirs.wofz(0.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_owens_t(dtype: str) -> None:
    edges = [(0, 1), (0, INF), (1, INF), (-1, -INF), (INF, 1), (2, 0), (0, 0), (NAN, 1), (1, NAN), (1, 1), (3, -1)]
    both = np.concatenate([np.stack([RANDOM.normal(size=600) * 3, RANDOM.normal(size=600) * 2], 1), np.array(edges)])
    (h, exact_h), (a, exact_a) = _given(both[:, 0], dtype), _given(both[:, 1], dtype)
    wanted = theirs.owens_t(exact_h, exact_a)
    finite = np.nan_to_num(exact_h, posinf=0.0, neginf=0.0)
    density = np.exp(-np.square(finite) / 2) * (1 + np.abs(finite))
    _check(special.owens_t(h, a), wanted, density, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives(dtype: str) -> None:
    """In the middle of a graph: of 3 Σ w · f(x)."""
    x, exact = _given(np.array([-6.0, -1.5, -0.1, 0.0, 0.2, 0.9, 1.1, 2.5, 120.0]), dtype)
    weights = np.linspace(-1.0, 2.0, len(exact))

    def gradient(function: Any) -> np.ndarray:
        return np.asarray(lx.grad(lambda x: 3.0 * lnp.sum(lnp.asarray(weights, dtype) * function(x)))(x), np.float64)

    eps = float(np.finfo(dtype).eps)
    slopes = 1 - 2 * exact * theirs.dawsn(exact)
    np.testing.assert_allclose(gradient(special.dawsn), 3 * weights * slopes, rtol=64 * eps, atol=2e3 * eps)
    phase = np.pi / 2 * exact**2
    for number, wanted in enumerate((np.sin(phase), np.cos(phase))):
        found = gradient(lambda x, number=number: special.fresnel(x)[number])
        assert np.all(np.abs(found - 3 * weights * wanted) <= 64 * eps * (1 + np.abs(phase)) * np.abs(weights))
    by_h = -np.exp(-np.square(exact) / 2) * theirs.erf(0.7 * exact / math.sqrt(2)) / math.sqrt(8 * math.pi)
    found = gradient(lambda h: special.owens_t(h, lnp.asarray(0.7, dtype)))
    np.testing.assert_allclose(found, 3 * weights * by_h, rtol=64 * eps, atol=8 * eps)
    by_a = np.exp(-0.32 * (1 + exact**2)) / (2 * math.pi * (1 + exact**2))
    found = gradient(lambda a: special.owens_t(lnp.asarray(0.8, dtype), a))
    np.testing.assert_allclose(found, 3 * weights * by_a, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("name", ["dawsn", "fresnel"])
def test_complex_numbers_are_refused(name: str) -> None:
    with pytest.raises(lx.DtypeError, match=f"{name} is not defined for"):
        getattr(special, name)(1j)
