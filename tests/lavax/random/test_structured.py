"""Random vectors of a given covariance, and random orthogonal matrices."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lavax import random
from lavax.base.errors import ShapeError

pytest.importorskip("lavax.linalg")

MEAN = np.array([1.0, 2.0], np.float32)
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)


def test_known_vectors() -> None:
    found = random.multivariate_normal(random.key(0), MEAN, COVARIANCE, (2,))
    expected = [[3.29476261138916, 4.468152046203613], [0.38680487871170044, 1.7731614112854004]]
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


def test_known_orthogonal_matrices() -> None:
    square = [
        [0.9554101228713989, 0.2941357493400574, 0.02599557861685753],
        [-0.04628981649875641, 0.2361408770084381, -0.9706156253814697],
        [-0.2916313707828522, 0.9261326193809509, 0.23922686278820038],
    ]
    wide = [
        [0.96083664894104, -0.2567500174045563, 0.1042710393667221],
        [0.18604838848114014, 0.31881120800971985, -0.9293790459632874],
    ]
    np.testing.assert_allclose(np.asarray(random.orthogonal(random.key(0), 3)), square, atol=2e-5)
    np.testing.assert_allclose(np.asarray(random.orthogonal(random.key(0), 2, m=3)), wide, atol=2e-5)


def test_known_unitary_matrices() -> None:
    """By jax 0.10.2."""
    known = [
        [0.36477923 - 0.88739485j, -0.28078812 + 0.02499088j],
        [-0.27182648 + 0.07467848j, -0.65181035 - 0.70404315j],
    ]
    np.testing.assert_allclose(np.asarray(random.orthogonal(random.key(0), 2, dtype="complex64")), known, atol=2e-5)
    wide = np.asarray(random.orthogonal(random.key(2), 2, (3,), "complex64", 5))
    np.testing.assert_allclose(wide @ wide.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-5)


def test_the_covariance_is_the_given_one() -> None:
    draws = 20_000
    found = np.asarray(random.multivariate_normal(random.key(3), MEAN, COVARIANCE, (draws,))).astype(np.float64)
    assert (np.abs(found.mean(axis=0) - MEAN) < 5 * np.sqrt(np.diag(COVARIANCE) / draws)).all()
    # The variance of a sample covariance is (c_ii c_jj + c_ij^2) / n.
    spread = np.sqrt((np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)) + COVARIANCE**2) / draws)
    assert (np.abs(np.cov(found.T) - COVARIANCE) < 5 * spread).all()


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 2), (2, 5), (1, 1)])
def test_the_shorter_side_is_orthonormal(n: int, m: int) -> None:
    found = np.asarray(random.orthogonal(random.key(2), n, (3,), m=m)).astype(np.float64)
    assert found.shape == (3, n, m)
    product = found @ found.swapaxes(-1, -2) if n < m else found.swapaxes(-1, -2) @ found
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(n, m)), product.shape), atol=1e-5)


def test_batch_axes() -> None:
    means = np.zeros((3, 1, 2), np.float32)
    covariances = np.broadcast_to(COVARIANCE, (4, 2, 2))
    assert random.multivariate_normal(random.key(0), means, covariances).shape == (3, 4, 2)
    assert random.multivariate_normal(random.key(0), means, covariances, (5, 3, 4)).shape == (5, 3, 4, 2)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: random.multivariate_normal(random.key(0), MEAN, np.eye(3, dtype=np.float32)),
        "multivariate_normal: mean must be [..., n] and cov [..., n, n], got f32[2] and f32[3,3]",
    ),
    (
        lambda: random.multivariate_normal(random.key(0), np.zeros((3, 2)), COVARIANCE, (2,)),
        "do not broadcast",
    ),
    (lambda: random.orthogonal(random.key(0), -1), "orthogonal: a shape has no negative extents"),
]


@pytest.mark.parametrize(("draw", "message"), REFUSED)
def test_what_is_refused(draw: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError) as found:
        draw()
    assert message in str(found.value)


def test_singular_covariances_have_normal_vectors_by_their_eigenvalues() -> None:
    ones = np.ones((2, 2), np.float32)
    found = np.asarray(random.multivariate_normal(random.key(3), np.zeros(2), ones, (4000,), method="eigh"))
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=0, atol=1e-3)  # the root of a rounding
    assert abs(found.var() - 1) < 0.1
    with pytest.raises(ValueError, match="method must be 'cholesky', 'eigh' or 'svd', got 'qr'"):
        random.multivariate_normal(random.key(3), np.zeros(2), ones, method="qr")
