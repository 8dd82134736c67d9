"""The order of complex numbers is NumPy's: by real parts, then by imaginary parts, NaN last; on the device."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of comparisons with NaN

_ENDS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]


def _points() -> np.ndarray:
    """Pairs of special numbers, some twice, in no order."""
    pairs = list(itertools.product(_ENDS, _ENDS))
    points = np.empty(len(pairs), np.complex64)
    points.real, points.imag = zip(*pairs, strict=True)
    return np.random.default_rng(0).permutation(np.concatenate([points, points[:20]]))


POINTS = _points()
FINITE = POINTS[np.isfinite(POINTS)]
BLOCK = FINITE[:24].reshape(2, 3, 4)
LEFT = np.repeat(POINTS[:, None], len(POINTS), 1)
RIGHT = LEFT.T.copy()


def assert_same(found: object, expected: object) -> None:
    got, right = np.asarray(found), np.asarray(expected)
    assert got.shape == right.shape and (got.dtype == right.dtype or right.dtype == np.int64)
    for part in ("real", "imag"):
        np.testing.assert_array_equal(getattr(got, part), getattr(right, part))


def test_sorted_arrays_and_their_orders() -> None:
    assert_same(lnp.sort(POINTS), np.sort(POINTS))
    assert_same(lnp.argsort(POINTS), np.argsort(POINTS, kind="stable"))
    for axis in (0, 1, -1, None):
        assert_same(lnp.sort(BLOCK, axis), np.sort(BLOCK, axis))
    assert_same(lnp.sort(FINITE, descending=True), np.sort(FINITE)[::-1])
    for given in (BLOCK, BLOCK.real, BLOCK.real.astype(np.int32)):
        assert_same(lnp.sort_complex(given), np.sort_complex(given).astype(np.complex64))
    keys = np.stack([BLOCK[0, 0], BLOCK[1, 0], BLOCK[0, 1]])
    assert_same(lnp.lexsort(keys), np.lexsort(keys))


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"])
def test_comparisons(name: str) -> None:
    assert_same(getattr(lnp, name)(LEFT, RIGHT), getattr(np, name)(LEFT, RIGHT))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extrema(name: str) -> None:
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True):
            found = getattr(lnp, name)(BLOCK, axis, keepdims=keepdims)
            assert_same(found, getattr(np, name)(BLOCK, axis, keepdims=keepdims))
    lines = POINTS[:60].reshape(3, 20)
    if name.startswith("arg"):
        assert_same(getattr(lnp, name)(lines, 1), getattr(np, name)(lines, 1))
    else:
        assert np.isnan(np.asarray(getattr(lnp, name)(lines, 1))).all()
        assert_same(getattr(lnp, name)(BLOCK, (0, 2)), getattr(np, name)(BLOCK, (0, 2)))
        assert_same(getattr(lnp, name)(BLOCK, initial=0.5j), getattr(np, name)(BLOCK, initial=0.5j))
        with_nan = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 0, np.complex64(np.nan), BLOCK)
        assert_same(getattr(lnp, f"nan{name}")(with_nan, 0), getattr(np, f"nan{name}")(with_nan, 0))


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_in_sorted_arrays(side: str) -> None:
    for points in (FINITE, POINTS):
        row = np.sort(points)
        assert_same(lnp.searchsorted(row, points, side), np.searchsorted(row, points, side))


def test_sets() -> None:
    for found, expected in zip(
        lnp.unique(FINITE, True, True, True), np.unique(FINITE, True, True, True), strict=True
    ):
        assert_same(found, expected)
    assert lnp.unique(POINTS).shape == np.unique(POINTS).shape
    for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d", "isin"):
        assert_same(getattr(lnp, name)(FINITE[:20], FINITE[10:30]), getattr(np, name)(FINITE[:20], FINITE[10:30]))


_Z = np.array([1 + 1j, 2, -1j, 1 - 1j, 3j], np.complex64)
_WEIGHTS = np.arange(1, 6, dtype=np.float32)


@pytest.mark.usefixtures("reference_backend")
def test_gradients_follow_the_elements() -> None:
    """|w·z| has the gradient w·conj(z)/|z| at the weight that an element meets."""
    rank = np.empty(5, int)
    rank[np.argsort(_Z)] = range(5)
    unit = _Z.conj() / np.abs(_Z)
    gradient = lx.grad(lambda z: lnp.sum(lnp.abs(lnp.sort(z * 1) * _WEIGHTS)))(_Z)
    np.testing.assert_allclose(np.asarray(gradient), unit * _WEIGHTS[rank], rtol=1e-6)
    gradient = lx.grad(lambda z: lnp.abs(lnp.max(z * 1)))(_Z)
    np.testing.assert_allclose(np.asarray(gradient), np.where(_Z == 2, unit, 0), rtol=1e-6)
    gradient = lx.grad(lambda z: lnp.sum(lnp.abs(lnp.maximum(z, z[::-1]) * _WEIGHTS)))(_Z)
    wins = np.array([1, 2, 0, 0, 0]) + np.array([5, 4, 3, 0, 0])
    np.testing.assert_allclose(np.asarray(gradient), unit * wins, rtol=1e-6)


@pytest.mark.usefixtures("reference_backend")
def test_vmap_and_loops() -> None:
    assert_same(lx.vmap(lnp.sort)(BLOCK[0]), np.sort(BLOCK[0]))
    assert_same(lx.vmap(lnp.max)(BLOCK[0]), np.max(BLOCK[0], 1))
    best, _ = lax.scan(lambda most, z: (lnp.maximum(most, z), None), FINITE[0], FINITE)
    assert complex(best) == np.max(FINITE)
