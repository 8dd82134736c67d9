"""Matrices that are taken apart, and systems that are solved."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from lavax.ir import float32, float64
from lavax.ir.graph import make_node
from lavax.ir.types import DType
from tests.operation_cases.case import Case, Shape, case_of, evaluated, generator, input_like

_MATRICES: tuple[Shape, ...] = ((1, 1), (3, 3), (2, 4, 4), (1, 2, 5, 5))
_SETTINGS_OF_PARTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "lu": [{}],
    "householder": [{}],
    "qr": [dict(complete=False), dict(complete=True)],
    "eigh": [dict(vectors=False), dict(vectors=True)],
    "jacobi": [dict(relative=False, across=False, sweeps=16), dict(relative=True, across=False, sweeps=16)],
    "svd": [dict(vectors=False, complete=False), dict(vectors=True, complete=False), dict(vectors=True, complete=True)],
}
_OF_SYMMETRIC = ("eigh", "jacobi")


def _matrix(label: str, shape: Shape, symmetric: bool = False, dtype: DType = float32) -> np.ndarray:
    """Singular values 1, 2, 3, …; symmetric matrices are positive definite."""
    random = generator(f"{label}{shape}")
    *batch, rows, columns = shape
    left = np.linalg.qr(random.normal(size=(*batch, rows, columns)))[0]
    right = np.swapaxes(left, -1, -2) if symmetric else np.linalg.qr(random.normal(size=(*batch, columns, columns)))[0]
    return np.asarray((left * np.arange(1.0, columns + 1)) @ right, dtype.numpy)


def _taken_apart(op: str) -> Iterator[Case]:
    tall = ((3, 1), (5, 3), (2, 4, 2)) if op in ("householder", "qr", "svd") else ()
    for shape in (*_MATRICES, *tall):
        for attrs in _SETTINGS_OF_PARTS[op]:
            square = shape[-1] == shape[-2]
            if attrs.get("complete") and not square and op == "svd":
                continue  # what completes the left vectors is not determined
            label = f"{list(shape)}-{'-'.join(str(value) for value in attrs.values())}"
            no_gradient = bool(attrs.get("complete")) and not square
            yield case_of(op, label, [_matrix(op, shape, op in _OF_SYMMETRIC)], attrs, special=no_gradient)
    for attrs in _SETTINGS_OF_PARTS[op]:
        label = f"f64-{'-'.join(str(value) for value in attrs.values())}"
        yield case_of(op, label, [_matrix(op, (2, 4, 4), op in _OF_SYMMETRIC, float64)], attrs)


def _cholesky() -> Iterator[Case]:
    for shape in _MATRICES:
        yield case_of("cholesky", str(list(shape)), [_matrix("cholesky", shape, symmetric=True)], {})
    yield case_of("cholesky", "f64", [_matrix("cholesky", (2, 4, 4), symmetric=True, dtype=float64)], {})


def _triangular_solve() -> Iterator[Case]:
    sizes: tuple[tuple[Shape, int], ...] = (((1, 1), 1), ((3, 3), 1), ((2, 4, 4), 3), ((5, 5), 17))
    for dtype, (shape, columns) in product((float32, float64), sizes):
        random = generator(f"triangular_solve{shape}{columns}")
        matrix = np.asarray(random.uniform(-1, 1, shape) + 2 * np.eye(shape[-1]), dtype.numpy)
        right = np.asarray(random.uniform(-3, 3, (*shape[:-1], columns)), dtype.numpy)
        for lower, transposed, unit in ((1, 0, 0), (0, 0, 1), (1, 1, 1), (0, 1, 0)):
            attrs = dict(lower=bool(lower), transposed=bool(transposed), unit_diagonal=bool(unit))
            label = f"{dtype}{list(shape)}-{columns}-{lower}-{transposed}-{unit}"
            yield case_of("triangular_solve", label, [matrix, right], attrs)


def _linear_solve() -> Iterator[Case]:
    sizes: tuple[tuple[Shape, int], ...] = (((1, 1), 1), ((3, 3), 1), ((2, 4, 4), 3))
    for dtype, (shape, columns) in product((float32, float64), sizes):
        matrix = _matrix(f"linear_solve{columns}", shape, dtype=dtype)
        factored = np.asarray(evaluated(make_node("lu", [input_like("x", matrix)], {}), matrix), dtype.numpy)
        right = np.asarray(generator(f"linear_solve{shape}").uniform(-3, 3, (*shape[:-1], columns)), dtype.numpy)
        for transposed in (False, True):
            label = f"{dtype}{list(shape)}-{columns}-{transposed}"
            yield case_of("linear_solve", label, [matrix, factored, right], dict(transposed=transposed))


def _tridiagonal() -> Iterator[Case]:
    """Matrices whose tridiagonal form has ones beside the diagonal, so that it is determined well."""
    for dtype, shape in product((float32, float64), _MATRICES):
        *batch, size, _ = shape
        form = np.diag(np.arange(1.0, size + 1)) + np.eye(size, k=1) + np.eye(size, k=-1)
        turn = np.broadcast_to(np.eye(size), shape).copy()
        if size > 1:
            random = generator(f"tridiagonal{shape}").normal(size=(*batch, size - 1, size - 1))
            turn[..., 1:, 1:] = np.linalg.qr(random)[0]
        matrix = turn @ form @ np.swapaxes(turn, -1, -2)
        yield case_of("tridiagonal", f"{dtype}{list(shape)}", [matrix.astype(dtype.numpy)], {})


def _tridiagonal_eigh() -> Iterator[Case]:
    """The values alone: vectors have either sign."""
    for dtype, shape in product((float32, float64), _MATRICES):
        random = generator(f"tridiagonal_eigh{shape}")
        reflections, lines = np.zeros(shape, dtype.numpy), random.uniform(-1, 1, (2, *shape[:-1]))
        diagonal, beside = lines.astype(dtype.numpy)
        diagonal += 2 * np.arange(shape[-1], dtype=dtype.numpy)
        beside[..., -1] = 0
        label = f"{dtype}{list(shape)}"
        yield case_of("tridiagonal_eigh", label, [reflections, diagonal, beside], dict(vectors=False))


def _bidiagonal() -> Iterator[Case]:
    """Matrices whose bidiagonal form is well conditioned, so that it is determined well."""
    for dtype, shape in product((float32, float64), _MATRICES):
        *batch, size, _ = shape
        random = generator(f"bidiagonal{shape}")
        form = 2 * np.eye(size) + np.eye(size, k=1)
        left = np.linalg.qr(random.normal(size=shape))[0]
        right = np.broadcast_to(np.eye(size), shape).copy()
        if size > 1:
            right[..., 1:, 1:] = np.linalg.qr(random.normal(size=(*batch, size - 1, size - 1)))[0]
        matrix = left @ form @ np.swapaxes(right, -1, -2)
        yield case_of("bidiagonal", f"{dtype}{list(shape)}", [matrix.astype(dtype.numpy)], {})


def _bidiagonal_svd() -> Iterator[Case]:
    """The values alone: vectors have either sign."""
    for dtype, shape in product((float32, float64), _MATRICES):
        lines = generator(f"bidiagonal_svd{shape}").uniform(-1, 1, (2, *shape[:-1]))
        diagonal, beside = lines.astype(dtype.numpy)
        diagonal += 2 * np.arange(shape[-1], dtype=dtype.numpy)
        beside[..., -1] = 0
        sides = [np.zeros(shape, dtype.numpy)] * 2
        yield case_of("bidiagonal_svd", f"{dtype}{list(shape)}", [*sides, diagonal, beside], dict(vectors=False))


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    **{op: partial(_taken_apart, op) for op in _SETTINGS_OF_PARTS},
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "linear_solve": _linear_solve,
    "bidiagonal": _bidiagonal,
    "bidiagonal_svd": _bidiagonal_svd,
    "tridiagonal": _tridiagonal,
    "tridiagonal_eigh": _tridiagonal_eigh,
}
