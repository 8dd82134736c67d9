"""What matrices are taken apart into, by what it must be, and not by a second algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import TensorType, float32, int32, interpret
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.ops.linear_algebra import parts_of
from tests.operation_cases import Case, cases_of


def turned(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def parts(case: Case) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The matrix, and the parts of its result."""
    (whole,), (matrix,) = interpret(case.graph, *case.arrays), case.arrays
    places = parts_of(case.op, case.graph.inputs[0].type, case.node.attrs)
    stack = matrix.shape[:-2]
    found = {
        name: whole[..., start : start + int(np.prod(shape))].reshape(*stack, *shape)
        for name, (start, shape) in places.items()
    }
    return matrix.astype(np.float64), found


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=0, atol=1e-12)


def orthonormal(columns: np.ndarray) -> None:
    close(turned(columns) @ columns, np.eye(columns.shape[-1]))


def test_cholesky() -> None:
    for case in cases_of("cholesky"):
        (factor,) = interpret(case.graph, *case.arrays)
        close(np.triu(factor, 1), np.zeros(1))
        product, matrix = factor @ turned(factor), case.arrays[0].astype(np.float64)
        close(np.tril(product), np.tril(matrix))


def test_triangular_solve() -> None:
    for case in cases_of("triangular_solve"):
        (x,), (matrix, right), attrs = interpret(case.graph, *case.arrays), case.arrays, case.node.attrs
        triangle = (np.tril if attrs["lower"] else np.triu)(matrix.astype(np.float64))
        if attrs["unit_diagonal"]:
            triangle = triangle + (1 - triangle) * np.eye(matrix.shape[-1])
        close((turned(triangle) if attrs["transposed"] else triangle) @ x, right)


def test_linear_solve() -> None:
    for case in cases_of("linear_solve"):
        (x,), (matrix, _, right) = interpret(case.graph, *case.arrays), case.arrays
        close((turned(matrix) if case.node.attrs["transposed"] else matrix) @ x, right)


def test_lu() -> None:
    for case in cases_of("lu"):
        matrix, found = parts(case)
        factors, order = found["factors"], found["permutation"].astype(int)
        lower = np.tril(factors, -1)
        assert (np.abs(lower) <= 1).all()
        moved = np.take_along_axis(matrix, order[..., None], -2)
        close((lower + np.eye(matrix.shape[-1])) @ np.triu(factors), moved)
        signs = np.linalg.det(
            np.take_along_axis(np.broadcast_to(np.eye(matrix.shape[-1]), matrix.shape), order[..., None], -2)
        )
        close(found["parity"][..., 0], signs)


def test_householder() -> None:
    for case in cases_of("householder"):
        matrix, found = parts(case)
        product = matrix
        for k in range(matrix.shape[-1]):
            vector = found["vectors"][..., k : k + 1]
            assert (vector[..., :k, :] == 0).all()
            length = turned(vector) @ vector
            product = product - 2 * vector @ (turned(vector) @ product) / np.where(length == 0, 1, length)
        close(product[..., : matrix.shape[-1], :], found["r"])
        close(product[..., matrix.shape[-1] :, :], np.zeros(1))
        close(np.tril(found["r"], -1), np.zeros(1))


def test_qr() -> None:
    for case in cases_of("qr"):
        matrix, found = parts(case)
        orthonormal(found["q"])
        close(np.tril(found["r"], -1), np.zeros(1))
        close(found["q"] @ found["r"], matrix)


def test_eigh() -> None:
    for case in cases_of("eigh"):
        matrix, found = parts(case)
        assert (np.diff(found["values"]) >= 0).all()
        symmetric = np.tril(matrix) + turned(np.tril(matrix, -1))
        close(np.sum(found["values"], -1), np.trace(symmetric, axis1=-2, axis2=-1))
        if case.node.attrs["vectors"]:
            rows = found["vectors"]
            orthonormal(turned(rows))
            close(turned(rows) @ (found["values"][..., None] * rows), symmetric)
            assert (rows.max(-1) >= -rows.min(-1)).all()


def test_jacobi() -> None:
    for case in cases_of("jacobi"):
        matrix, found = parts(case)
        rotation, rotated = found["rotation"], found["rotated"]
        orthonormal(rotation)
        close(rotation @ matrix @ turned(rotation), rotated)
        close(rotated * (1 - np.eye(matrix.shape[-1])), np.zeros(1))


def product_of_reflections(rows: np.ndarray) -> np.ndarray:
    product = np.broadcast_to(np.eye(rows.shape[-1]), rows.shape)
    for k in range(rows.shape[-1]):
        u = rows[..., k, :, None]
        product = product - (product @ u) @ turned(u)
    return product


def test_tridiagonal() -> None:
    for case in cases_of("tridiagonal"):
        matrix, found = parts(case)
        size, q = matrix.shape[-1], product_of_reflections(found["reflections"])
        orthonormal(q)
        close(np.tril(found["reflections"]), np.zeros(1))
        t = turned(q) @ (np.tril(matrix) + turned(np.tril(matrix, -1))) @ q
        close(np.diagonal(t, axis1=-2, axis2=-1), found["diagonal"])
        close(np.diagonal(t, 1, axis1=-2, axis2=-1), found["beside"][..., :-1])
        close(np.triu(t, 2), np.zeros(1))
        assert (found["beside"][..., size - 1 :] == 0).all()


def test_vectors_of_tridiagonal_matrices() -> None:
    x = input_node("x", TensorType((2, 5, 5), float32))
    matrix = np.random.default_rng(3).normal(size=(2, 5, 5)) * [[[1.0]], [[3.0]]]
    matrix = matrix + turned(matrix)
    made = make_node("tridiagonal", [x], {})
    (packed,) = interpret(graph_of([x], [made]), matrix)
    lines = [packed[..., :5], packed[..., 5:10]]
    inputs = [x, *(input_node(name, TensorType((2, 5), float32)) for name in ("diagonal", "beside"))]
    node = make_node("tridiagonal_eigh", inputs, dict(vectors=True))
    (found,) = interpret(graph_of(inputs, [node]), packed[..., 10:].reshape(2, 5, 5), *lines)
    values, rows = found[..., :5], found[..., 5:].reshape(2, 5, 5)
    orthonormal(turned(rows))
    close(rows @ matrix @ turned(rows), values[..., None] * np.eye(5))
    assert (np.diff(values) >= 0).all()


def test_bidiagonal() -> None:
    for case in cases_of("bidiagonal"):
        matrix, found = parts(case)
        left, right = (product_of_reflections(found[side]) for side in ("left", "right"))
        orthonormal(left)
        orthonormal(right)
        close(np.tril(found["left"], -1), np.zeros(1))
        close(np.tril(found["right"]), np.zeros(1))
        b = turned(left) @ matrix @ right
        close(np.diagonal(b, axis1=-2, axis2=-1), found["diagonal"])
        close(np.diagonal(b, 1, axis1=-2, axis2=-1), found["beside"][..., :-1])
        close(np.tril(b, -1) + np.triu(b, 2), np.zeros(1))


def test_vectors_of_bidiagonal_matrices() -> None:
    x = input_node("x", TensorType((2, 5, 5), float32))
    matrix = np.random.default_rng(4).normal(size=(2, 5, 5)) * [[[1.0]], [[3.0]]]
    (packed,) = interpret(graph_of([x], [make_node("bidiagonal", [x], {})]), matrix)
    given = [packed[..., 10:35].reshape(2, 5, 5), packed[..., 35:].reshape(2, 5, 5), packed[..., :5], packed[..., 5:10]]
    names = ("left", "right", "diagonal", "beside")
    inputs = [input_node(name, TensorType(each.shape, float32)) for name, each in zip(names, given, strict=True)]
    node = make_node("bidiagonal_svd", inputs, dict(vectors=True))
    (found,) = interpret(graph_of(inputs, [node]), *given)
    values, left, right = found[..., :5], found[..., 5:30].reshape(2, 5, 5), found[..., 30:].reshape(2, 5, 5)
    orthonormal(turned(left))
    orthonormal(turned(right))
    close(left @ matrix @ turned(right), values[..., None] * np.eye(5))
    assert (np.diff(values) <= 0).all()


def test_a_sweep_across_rotates_each_row_of_one_half_with_each_of_the_other() -> None:
    matrix = np.eye(4) + np.kron(np.ones((2, 2)), [[0.0, 1], [1, 0]])
    x = input_node("x", TensorType((4, 4), float32))
    node = make_node("jacobi", [x], dict(relative=False, across=True, sweeps=1))
    (found,) = interpret(graph_of([x], [node]), np.array([[1.0, 2, 0, 0], [2, 1, 0, 0], [0, 0, 1, 2], [0, 0, 2, 1]]))
    np.testing.assert_array_equal(found[16:].reshape(4, 4), np.eye(4))
    (found,) = interpret(graph_of([x], [node]), matrix)
    assert not np.array_equal(found[16:].reshape(4, 4), np.eye(4))


def test_svd() -> None:
    for case in cases_of("svd"):
        matrix, found = parts(case)
        values = found["values"]
        assert (np.diff(values) <= 0).all() and (values >= 0).all()
        close(np.sum(values**2, -1), np.sum(matrix**2, (-1, -2)))
        if case.node.attrs["vectors"]:
            orthonormal(found["left"])
            orthonormal(turned(found["right"]))
            close((found["left"][..., : values.shape[-1]] * values[..., None, :]) @ found["right"], matrix)
            assert (found["right"].max(-1) >= -found["right"].min(-1)).all()


def test_what_cannot_be_taken_apart_gives_nan() -> None:
    x = input_node("x", TensorType((2, 2, 2), float32))
    matrices = np.stack([-np.eye(2), np.eye(2)])
    (factors,) = interpret(graph_of([x], [make_node("cholesky", [x], {})]), matrices)
    np.testing.assert_array_equal(factors, [[[np.nan, 0], [np.nan, np.nan]], np.eye(2)])


SETTINGS = {"lu": {}, "householder": {}, "qr": {"complete": False}, "eigh": {"vectors": True}, "cholesky": {}}


@pytest.mark.parametrize("op", SETTINGS)
def test_types(op: str) -> None:
    def node(shape: tuple[int, ...], dtype: object = float32) -> None:
        make_node(op, [input_node("x", TensorType(shape, dtype))], SETTINGS[op])  # type: ignore[arg-type]

    with pytest.raises(ShapeError, match=f"{op} takes "):
        node((2, 3))
    with pytest.raises(ShapeError, match=f"{op} takes matrices"):
        node((3,))
    with pytest.raises(ShapeError, match=f"{op} takes matrices with at least one row"):
        node((0, 0))
    with pytest.raises(DtypeError, match=f"{op} is defined for"):
        node((2, 2), int32)


def test_types_of_systems() -> None:
    matrix, other = (input_node(name, TensorType(shape, float32)) for name, shape in (("x", (2, 2)), ("y", (3, 1))))
    settings = {"lower": True, "transposed": False, "unit_diagonal": False}
    with pytest.raises(ShapeError, match=r"triangular_solve: f32\[3,1\] must agree with f32\[2,2\]"):
        make_node("triangular_solve", [matrix, other], settings)
    with pytest.raises(ShapeError, match=r"linear_solve: f32\[3,1\] must be what lu gives"):
        make_node("linear_solve", [matrix, other, matrix], {"transposed": False})
