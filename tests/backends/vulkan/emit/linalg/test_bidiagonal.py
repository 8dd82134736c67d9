"""Singular values by a bidiagonal form: rounding as of LAPACK, whatever the spectrum, and NaN where it belongs."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.backends.vulkan.emit.linalg import bidiagonal_singular_values
from lavax.ir.ops.linear_algebra import parts_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.target.kernel_limits import BidiagonalKernels
from tests.backends.vulkan.run.execution import backend, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(12)
SIZE = 36


def found_of(
    matrix: np.ndarray, *, vectors: bool = True, complete: bool = False, eager: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The left vectors, which are columns, the values, and the right vectors, which are rows."""
    attrs = dict(vectors=vectors, complete=complete)
    program = graph("svd", [matrix], **attrs)
    if backend().target.matrices.bidiagonal:
        assert "bidiagonal_svd" in {node.op for node in prepare(program, backend().target).nodes}
    (packed,) = run(program, [matrix], eager=eager)
    parts = {
        name: packed[..., start : start + int(np.prod(shape))].reshape(*packed.shape[:-1], *shape).astype(np.float64)
        for name, (start, shape) in parts_of("svd", program.inputs[0].type, attrs).items()
    }
    nothing = np.zeros(0)
    return parts.get("left", nothing), parts["values"], parts.get("right", nothing)


def assert_taken_apart(matrix: np.ndarray, *, complete: bool = False, eager: bool = False) -> None:
    left, values, right = found_of(matrix, complete=complete, eager=eager)
    exact, (rows, columns) = matrix.astype(np.float64), matrix.shape[-2:]
    rounding = (rows + 8) * np.finfo(matrix.dtype).eps / 2
    expected = np.linalg.svd(exact, compute_uv=False)
    scale = expected.max()
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding * scale)
    assert (values >= 0).all() and (np.diff(values) <= 0).all()
    _, alone, _ = found_of(matrix, vectors=False, eager=eager)
    np.testing.assert_allclose(alone, expected, rtol=0, atol=rounding * scale)
    for side in (left, np.swapaxes(right, -1, -2)):
        square = np.swapaxes(side, -1, -2) @ side
        np.testing.assert_allclose(square - np.eye(side.shape[-1]), 0 * square, atol=rounding)
    made = (left[..., :columns] * values[..., None, :]) @ right
    np.testing.assert_allclose(made, exact, rtol=0, atol=rounding * scale)
    assert (right.max(-1) >= -right.min(-1)).all()


def turned_by_chance(values: np.ndarray) -> np.ndarray:
    left, right = (np.linalg.qr(RANDOM.normal(size=(len(values),) * 2))[0] for _ in range(2))
    return (left * values) @ right


FALLING = 10.0 ** -np.arange(SIZE)
ANY = RANDOM.normal(size=(SIZE, SIZE))
BESIDE = np.eye(SIZE, k=1)
SPECTRA = {
    "any": ANY,
    "equal": np.eye(SIZE),
    "negative": -np.eye(SIZE),
    "zero": np.zeros((SIZE, SIZE)),
    "three values": turned_by_chance(np.arange(SIZE) % 3.0),
    "a cluster": turned_by_chance(1 + 1e-6 * np.arange(SIZE)),
    "rank one": np.ones((SIZE, SIZE)),
    "rank three": ANY[:, :3] @ ANY[:3],
    "falling": turned_by_chance(FALLING),
    "falling rows": ANY * FALLING[:, None] ** 0.1,
    "falling columns": ANY * FALLING**0.1,
    "rising rows": ANY * FALLING[::-1, None] ** 0.1,
    "rising diagonals": np.diag(FALLING[::-1] ** 0.3) + np.diag(FALLING[:0:-1] ** 0.3, 1),
    "a nilpotent": BESIDE,
    "Jordan's": np.eye(SIZE) + 30 * BESIDE,
    "zeros on a diagonal": np.diag(np.arange(SIZE) % 5.0) + BESIDE,
    "blocks": np.kron(np.eye(SIZE // 4), np.ones((4, 4))),
    "a triangle": np.triu(ANY),
    "a column": ANY * (np.arange(SIZE) == 7),
    "a row": ANY * (np.arange(SIZE) == 7)[:, None],
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name: str) -> None:
    assert_taken_apart(SPECTRA[name].astype(np.float32))


SHAPES = [(17, 17), (33, 33), (2, 3, 20, 20), (40, 8, 8), (50, 19), (3, 40, 9), (128, 128)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sizes_and_batches(shape: tuple[int, ...]) -> None:
    assert_taken_apart(RANDOM.normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("shape", [(70, 20), (3, 30, 9)], ids=str)
def test_whole_bases(shape: tuple[int, ...]) -> None:
    assert_taken_apart(RANDOM.normal(size=shape).astype(np.float32), complete=True)


@pytest.mark.parametrize("factor", [1e30, 1e-34])
def test_squares_neither_overflow_nor_vanish(factor: float) -> None:
    matrix = (ANY * factor).astype(np.float32)
    assert_taken_apart(matrix)


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_taken_apart(RANDOM.normal(size=(2, 21, 21)))


def test_eager_programs() -> None:
    assert_taken_apart(RANDOM.normal(size=(2, 19, 19)).astype(np.float32), eager=True)


def test_what_does_not_settle_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    if not backend().target.matrices.bidiagonal:
        pytest.skip("singular values are found in another way here")
    monkeypatch.setattr(bidiagonal_singular_values, "BIDIAGONAL", BidiagonalKernels(most_rotations=100))
    for part in found_of(RANDOM.normal(size=(34, 34)).astype(np.float32)):
        assert np.isnan(part).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_stays_in_its_matrix(bad: float) -> None:
    matrices = RANDOM.normal(size=(3, 30, 30)).astype(np.float32)
    matrices[1, 20, 4] = bad
    for part in found_of(matrices):
        assert np.isnan(part[1]).all()
        assert np.isfinite(part[[0, 2]]).all()
    assert np.isnan(found_of(matrices, vectors=False)[1][1]).all()
