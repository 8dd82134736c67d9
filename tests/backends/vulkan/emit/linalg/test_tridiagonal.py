"""Eigenvalues by a tridiagonal form: rounding as of LAPACK, whatever the spectrum, and NaN where it belongs."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.backends.vulkan.emit.linalg import tridiagonal_eigenvalues
from lavax.ir.ops.linear_algebra import parts_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.target.kernel_limits import TridiagonalKernels
from tests.backends.vulkan.run.execution import backend, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(11)
SIZE = 48


def symmetric(*shape: int) -> np.ndarray:
    x = RANDOM.normal(size=(*shape, shape[-1]))
    return x + np.swapaxes(x, -1, -2)


def turned_by_chance(values: np.ndarray) -> np.ndarray:
    q = np.linalg.qr(RANDOM.normal(size=(len(values),) * 2))[0]
    return (q * values) @ q.T


def found_of(matrix: np.ndarray, *, vectors: bool = True, eager: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The values and the vectors, which are rows."""
    program = graph("eigh", [matrix], vectors=vectors)
    if matrix.size > 256 and backend().target.matrices.tridiagonal:
        assert "tridiagonal_eigh" in {node.op for node in prepare(program, backend().target).nodes}
    (packed,) = run(program, [matrix], eager=eager)
    parts = parts_of("eigh", program.inputs[0].type, dict(vectors=vectors))
    size = matrix.shape[-1]
    rows = packed[..., parts["vectors"][0] :].reshape(matrix.shape) if vectors else packed
    return packed[..., :size].astype(np.float64), rows.astype(np.float64)


def assert_taken_apart(matrix: np.ndarray, eager: bool = False) -> None:
    values, rows = found_of(matrix, eager=eager)
    exact, size = matrix.astype(np.float64), matrix.shape[-1]
    rounding = (size + 8) * np.finfo(matrix.dtype).eps / 2
    expected = np.linalg.eigvalsh(exact)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding * scale)
    alone, _ = found_of(matrix, vectors=False, eager=eager)
    np.testing.assert_allclose(alone, expected, rtol=0, atol=rounding * scale)
    identity = np.eye(size)
    np.testing.assert_allclose(rows @ np.swapaxes(rows, -1, -2) - identity, 0 * exact, atol=rounding)
    np.testing.assert_allclose(rows @ exact - values[..., None] * rows, 0 * exact, atol=rounding * scale)


PATH = np.eye(SIZE, k=1) + np.eye(SIZE, k=-1)
FALLING = 10.0 ** -np.arange(SIZE)
SPECTRA = {
    "any": symmetric(SIZE),
    "equal": np.eye(SIZE),
    "zero": np.zeros((SIZE, SIZE)),
    "three values": turned_by_chance(np.arange(SIZE) % 3.0),
    "rank one": np.ones((SIZE, SIZE)),
    "rank one, falling": np.outer(FALLING, FALLING),
    "falling": turned_by_chance(FALLING),
    "falling rows": symmetric(SIZE) * np.outer(FALLING**0.1, FALLING**0.1),
    "rising rows": symmetric(SIZE) * np.outer(FALLING[::-1] ** 0.1, FALLING[::-1] ** 0.1),
    "a path": PATH,
    "Wilkinson's": PATH + np.diag(np.abs(np.arange(SIZE) - SIZE // 2.0)),
    "blocks": np.kron(np.eye(SIZE // 4), np.ones((4, 4))),
    "diagonal": np.diag(np.arange(SIZE) - 7.0),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name: str) -> None:
    assert_taken_apart(SPECTRA[name].astype(np.float32))


@pytest.mark.parametrize("shape", [(17,), (33,), (2, 3, 20), (40, 5), (128,)], ids=str)
def test_sizes_and_batches(shape: tuple[int, ...]) -> None:
    assert_taken_apart(symmetric(*shape).astype(np.float32))


@pytest.mark.parametrize("factor", [1e30, 1e-34])
def test_squares_neither_overflow_nor_vanish(factor: float) -> None:
    values, _ = found_of((symmetric(SIZE) * factor).astype(np.float32))
    assert np.isfinite(values).all() and (values != 0).all()
    assert_taken_apart((SPECTRA["any"] * 1e30).astype(np.float32))


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_taken_apart(symmetric(2, 37))


def test_eager_programs() -> None:
    assert_taken_apart(symmetric(2, 19).astype(np.float32), eager=True)


def test_what_does_not_settle_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    if not backend().target.matrices.tridiagonal:
        pytest.skip("eigenvalues are found in another way here")
    monkeypatch.setattr(tridiagonal_eigenvalues, "TRIDIAGONAL", TridiagonalKernels(most_rotations=100))
    values, rows = found_of(symmetric(35).astype(np.float32))
    assert np.isnan(values).all() and np.isnan(rows).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_stays_in_its_matrix(bad: float) -> None:
    matrices = symmetric(3, 30).astype(np.float32)
    matrices[1, 20, 4] = matrices[1, 4, 20] = bad
    values, rows = found_of(matrices)
    assert np.isnan(values[1]).all() and np.isnan(rows[1]).all()
    assert np.isfinite(values[[0, 2]]).all() and np.isfinite(rows[[0, 2]]).all()
    assert np.isnan(found_of(matrices, vectors=False)[0][1]).all()
