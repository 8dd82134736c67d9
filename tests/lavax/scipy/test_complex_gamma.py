"""Gamma functions and their neighbours of complex numbers: SciPy's values in complex128, and derivatives."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError
from lavax.scipy import special

pytestmark = pytest.mark.usefixtures("reference_backend")

_draw = np.random.default_rng(0).normal
POINTS = np.concatenate(
    [
        *(size * (_draw(size=200) + 1j * _draw(size=200)) for size in (0.3, 1.0, 3.0, 8.0)),
        # Near the zeros of the logarithm, near poles, on either side of the cut, and far from all of them.
        [1 + 0.02j, 2 - 1e-3j, -2.0001, -3 + 1e-3j, complex(-0.5, -0.0), -0.5, -1e4 + 8j, 300 - 2j, 1e-20j],
    ]
)  # fmt: skip


# How many times its own rounding a relative error may be: an exponential's is that of its exponent.
CONDITIONS: dict[str, Any] = {
    "loggamma": lambda z: 1,
    "gamma": lambda z: 1 + np.abs(scipy.special.loggamma(z)) + np.abs(z * scipy.special.digamma(z)),
    "erfcx": lambda z: 1 + np.abs(z) ** 2,
}


@pytest.mark.parametrize(("dtype", "bound"), [("complex64", 8e-6), ("complex128", 3e-14)])
@pytest.mark.parametrize("name", ["loggamma", "gamma", "erfcx"])
def test_values(name: str, dtype: str, bound: float) -> None:
    with lx.enable_x64(dtype == "complex128"), np.errstate(all="ignore"):
        points = POINTS.astype(dtype)
        found = np.asarray(getattr(special, name)(points))
        right = getattr(scipy.special, name)(points.astype("complex128"))
    assert found.dtype == dtype
    normal = (np.abs(right) < 1e30) & (np.abs(right) > 1e-30)
    assert normal.mean() > 0.7
    allowed = bound * CONDITIONS[name](points.astype("complex128")) * np.abs(right)
    np.testing.assert_array_less(np.abs(found[normal] - right[normal]), allowed[normal])


def test_both_sides_of_the_cut() -> None:
    points = np.array([complex(-2.5, 0.0), complex(-2.5, -0.0)], "complex64")
    found = np.asarray(special.loggamma(points))
    np.testing.assert_allclose(found.imag, [-3 * np.pi, 3 * np.pi], rtol=1e-6)


def test_poles_are_not_numbers() -> None:
    for number in (0.0, -1.0, -4.0, complex(np.nan, 1), complex(1, np.nan)):
        assert np.isnan(complex(special.gamma(np.complex64(number))))
        assert np.isnan(complex(special.loggamma(np.complex64(number))))
    steep = lx.grad(lambda z: lnp.sum(lnp.abs(special.gamma(z)[1:])))(np.array([-1, 2 + 1j], "complex64"))
    assert np.isfinite(np.asarray(steep)).all()


def test_derivatives_of_loggamma() -> None:
    """The first is `digamma`, here in the middle of a graph, and the second its difference quotient."""
    points = np.array([1 + 0.5j, 2.2 - 0.3j, -1.3 + 0.4j, -2.5 - 0.7j, 5 + 6j, 0.2 + 9j, 0.49 + 0.1j], "complex64")
    exact = points.astype("complex128")
    right = scipy.special.digamma(exact)

    def once(z: Any) -> Any:
        return special.loggamma(2 * z / 2)

    first = lx.vmap(lx.grad(lambda z: lnp.sin(once(z)), holomorphic=True))(points)
    cosine = np.cos(scipy.special.loggamma(exact))
    np.testing.assert_allclose(np.asarray(first), cosine * right, rtol=2e-4)
    second = lx.vmap(lx.grad(lx.grad(once, holomorphic=True), holomorphic=True))(points)
    step = 1e-5
    slopes = (scipy.special.digamma(exact + step) - scipy.special.digamma(exact - step)) / (2 * step)
    np.testing.assert_allclose(np.asarray(second), slopes, rtol=2e-4)


def test_powers_less_one() -> None:
    points, exponents = np.array([0.5 + 1j, 2 - 0.3j, 1 + 1e-3j]), np.array([1.5 - 0.3j, 0.0, 0.2j])
    logarithm, safe = np.log(points), np.where(exponents == 0, 1, exponents)
    scaled = np.where(exponents == 0, logarithm, np.expm1(exponents * logarithm) / safe)
    given = points.astype("complex64"), exponents.astype("complex64")
    np.testing.assert_allclose(np.asarray(special.boxcox(*given)), scaled, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(special.boxcox1p(given[0] - 1, given[1])), scaled, rtol=1e-4)
    slope = lx.grad(lambda x: special.boxcox(x, np.complex64(1.5j)), holomorphic=True)(np.complex64(1 + 1j))
    np.testing.assert_allclose(complex(slope), (1 + 1j) ** (1.5j - 1), rtol=1e-5)


@pytest.mark.parametrize("name", ["rel_entr", "kl_div"])
def test_entropies_are_of_real_numbers(name: str) -> None:
    with pytest.raises(DtypeError, match=f"{name} takes real numbers, got c64"):
        getattr(special, name)(np.complex64(1j), 1.0)
