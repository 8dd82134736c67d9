"""Cosine and sine transforms on the device, against SciPy's of long doubles."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import lavax as lx
import lavax.numpy as lnp
import lavax.scipy.fft as fft
from tests.sweeps import all_pairs, each_value

RANDOM = np.random.default_rng(14)
FUNCTIONS = ("dct", "idct", "dst", "idst")


def _check(name: str, x: np.ndarray, unit: float, **settings: Any) -> None:
    wanted = getattr(scipy.fft, name)(x.astype(np.result_type(x, np.longdouble)), **settings)
    found = np.asarray(getattr(fft, name)(x, **settings))
    assert found.shape == wanted.shape
    assert np.linalg.norm((found - wanted).astype(np.clongdouble)) <= unit * np.linalg.norm(wanted), settings


# Even and odd lengths, of which one has a large prime factor.
@all_pairs(
    length=[2, 7, 74, 96],
    kind=[1, 2, 3, 4],
    settings=[{}, {"norm": "ortho"}, {"norm": "forward", "orthogonalize": True}],
    name=FUNCTIONS,
)
def test_types_and_norms(name: str, length: int, kind: int, settings: dict[str, Any]) -> None:
    _check(name, RANDOM.normal(size=(2, length)).astype(np.float32), _unit(length), type=kind, **settings)


@each_value(name=FUNCTIONS, length=[2, 7, 74, 96])
def test_norms_that_are_not_orthogonal(name: str, length: int) -> None:
    x = RANDOM.normal(size=(2, length)).astype(np.float32)
    _check(name, x, _unit(length), norm="ortho", orthogonalize=False)


def _unit(length: int) -> float:
    return 2**-23 * max(np.log2(length), 2)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_axes_and_lengths(name: str) -> None:
    x = RANDOM.normal(size=(6, 5)).astype(np.float32)
    _check(name, x, 1e-6, axis=0)
    _check(name, x, 1e-6, n=8)
    _check(name, x, 1e-6, n=3, axis=0)
    _check(f"{name}n", x, 1e-6, norm="ortho")
    _check(f"{name}n", x, 1e-6, s=(4, 9), axes=(0, 1))
    _check(f"{name}n", x, 1e-6, axes=())
    z = (x + 1j * x[::-1]).astype(np.complex64)
    _check(name, z, 1e-6)
    with lx.enable_x64():
        _check(name, RANDOM.normal(size=(2, 30)), 2e-15, norm="ortho")


def test_numbers_that_are_no_floats() -> None:
    _check("dct", np.arange(6), 1e-6)
    assert fft.dct(np.arange(6, dtype=np.float16)).dtype == np.float32


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_gradients_in_the_middle_of_a_graph(name: str, kind: int) -> None:
    """Of 3·Σ w ⊙ F(2x): 6·Fᵀw, by the transform of the unit vectors."""
    x, w = RANDOM.normal(size=(2, 9)).astype(np.float32)
    matrix = getattr(scipy.fft, name)(np.eye(9), type=kind)
    found = lx.grad(lambda x: 3 * (w * getattr(fft, name)(2 * x, type=kind)).sum())(x)
    np.testing.assert_allclose(found, 6 * matrix @ w, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("kind", [2, 3, 4])
def test_signs_of_64_bits_along_other_axes(kind: int) -> None:
    """A step of the transform may read integers of 64 bits, which no texel holds."""
    x = RANDOM.normal(size=(5, 176, 8)).astype(np.float32)

    def transformed(x: Any) -> Any:
        return lx.vmap(lambda line: fft.dst(line, type=kind, axis=1), in_axes=2, out_axes=2)(x)

    def total(x: Any) -> Any:
        return lnp.sum(fft.dst(2 * x, type=kind, axis=1) * x)

    with lx.enable_x64():
        found, gradient = np.asarray(transformed(x)), np.asarray(lx.grad(total)(x))
    wide = x.astype(np.float64)
    matrix = scipy.fft.dst(np.eye(176), type=kind, axis=1)
    np.testing.assert_allclose(found, scipy.fft.dst(wide, type=kind, axis=1), rtol=0, atol=2e-4)
    both = np.einsum("nij,ki->nkj", wide, 2 * (matrix + matrix.T))
    np.testing.assert_allclose(gradient, both, rtol=0, atol=4e-4)
