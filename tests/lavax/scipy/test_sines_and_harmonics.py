"""The sine and cosine integrals and spherical harmonics against SciPy's, and their derivatives."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special as theirs

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import special

pytestmark = pytest.mark.usefixtures("reference_backend")

RANDOM = np.random.default_rng(9)
DTYPES = ("float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_sine_and_cosine_integrals(dtype: str) -> None:
    sizes = np.concatenate([np.linspace(0, 30, 900), 10.0 ** RANDOM.uniform(-8, 4, 900), [4.0, np.inf, 0.0]])
    held = np.concatenate([sizes, -sizes, [np.nan]]).astype(dtype)
    eps = float(np.finfo(dtype).eps)
    with np.errstate(invalid="ignore"):
        wanted_sine, wanted_cosine = theirs.sici(held.astype(float))
        size = np.abs(held.astype(float))
        terms = np.where(size < 4, 2.0, 1 / np.maximum(size, 4.0))  # what is summed, as far as it is no larger
        envelope = np.maximum(terms, np.nan_to_num(np.abs(wanted_cosine)))
    for found, wanted, scale in zip(
        special.sici(lnp.asarray(held, dtype)), (wanted_sine, wanted_cosine), (np.abs(wanted_sine), envelope),
        strict=True,
    ):  # fmt: skip
        assert found.dtype == dtype
        numbers = np.asarray(found, float)
        known = np.isfinite(wanted)
        assert np.array_equal(numbers[~known], wanted[~known], equal_nan=True)
        assert np.all(np.abs(numbers[known] - wanted[known]) <= 8 * eps * scale[known])


def test_derivatives_of_integrals() -> None:
    x, weights = np.array([-7.0, -0.5, 0.3, 2.0, 4.5, 40.0]), np.array([1.0, -2.0, 3.0, 0.5, 2.0, -1.0])
    with lx.enable_x64():

        def loss(x: Any) -> Any:
            sine, cosine = special.sici(x)
            return 2 * lnp.sum(weights * sine) - lnp.sum(weights * cosine)

        slopes = weights * (2 * np.sin(x) - np.cos(x)) / x
        np.testing.assert_allclose(lx.grad(loss)(x), slopes, rtol=1e-12, atol=1e-14)
        bends = weights * ((2 * np.cos(x) + np.sin(x)) / x - (2 * np.sin(x) - np.cos(x)) / x**2)
        np.testing.assert_allclose(lx.grad(lambda x: lnp.sum(lx.grad(loss)(x)))(x), bends, rtol=1e-11, atol=1e-14)
        assert float(lx.grad(lambda x: special.sici(x)[0])(0.0)) == 1
    with pytest.raises(lx.DtypeError, match="sici is not defined for"):
        special.sici(1j)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spherical_harmonics(dtype: str) -> None:
    degrees, orders = RANDOM.integers(0, 13, 400), RANDOM.integers(-14, 15, 400)
    theta = np.concatenate([[0, np.pi, np.pi / 2, 0], RANDOM.uniform(0, np.pi, 396)]).astype(dtype)
    phi = RANDOM.uniform(0, 2 * np.pi, 400).astype(dtype)
    wanted = theirs.sph_harm_y(degrees, orders, theta.astype(float), phi.astype(float))
    found = special.sph_harm_y(degrees, orders, lnp.asarray(theta, dtype), lnp.asarray(phi, dtype))
    assert found.dtype == np.result_type(dtype, np.complex64)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=32 * float(np.finfo(dtype).eps))


def test_harmonics_of_traced_degrees() -> None:
    harmonic = lx.jit(lambda n: special.sph_harm_y(n, 1, 0.4, 0.3, n_max=5))
    for n in (0, 4, 5, 9):
        wanted = theirs.sph_harm_y(min(n, 5), 1, 0.4, 0.3)
        np.testing.assert_allclose(np.asarray(harmonic(n)), wanted, atol=1e-6)
    assert np.isnan(np.asarray(special.sph_harm_y(-1, 0, 0.4, 0.3)))
    grid = special.sph_harm_y(np.arange(4)[:, None], np.arange(4), 0.3, 0.1)
    np.testing.assert_allclose(
        np.asarray(grid), theirs.sph_harm_y(np.arange(4)[:, None], np.arange(4), 0.3, 0.1), atol=1e-6
    )
    with pytest.raises(ValueError, match="n is traced: give n_max"):
        lx.jit(lambda n: special.sph_harm_y(n, 1, 0.4, 0.3))(4)
    with pytest.raises(NotImplementedError, match="diff_n must be None"):
        special.sph_harm_y(2, 1, 0.4, 0.3, 1)


def test_derivatives_of_harmonics() -> None:
    """By the polar angle, at a pole too, and by the azimuth."""
    with lx.enable_x64():
        for theta in (0.0, 0.4, 2.0):

            def part(theta: Any, phi: Any) -> Any:
                return lnp.real((2 - 1j) * special.sph_harm_y(4, 2, theta, phi))

            found = lx.grad(part, (0, 1))(np.float64(theta), np.float64(0.7))
            exact = [
                np.real((2 - 1j) * theirs.sph_harm_y(4, 2, theta + a, 0.7 + b))
                for a, b in ((1e-5, 0), (-1e-5, 0), (0, 1e-5), (0, -1e-5))
            ]
            wanted = [(exact[0] - exact[1]) / 2e-5, (exact[2] - exact[3]) / 2e-5]
            np.testing.assert_allclose([float(one) for one in found], wanted, atol=1e-9)
