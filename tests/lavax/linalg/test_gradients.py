"""Gradients of lavax.linalg: on the device in float32, and in float64 against central differences, to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import interpret
from tests.lavax.linalg.linear_algebra import definite, slope, weighted, with_condition
from tests.lavax.numpy.arrays import traced

SQUARE, BATCH, TALL, WIDE = (with_condition(shape, 8) for shape in ((4, 4), (2, 3, 3), (5, 3), (3, 5)))
DEFINITE, RIGHT = definite((4, 4), 8), with_condition((4, 2), 3)
TRIANGLE = np.tril(SQUARE) + np.eye(4, dtype=np.float32)

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "cholesky": (lnp.linalg.cholesky, (DEFINITE,)),
    "cholesky of a batch": (lnp.linalg.cholesky, (definite((2, 3, 3), 8),)),
    "cholesky, upper, one triangle": (
        lambda x: lnp.linalg.cholesky(x, upper=True, symmetrize_input=False),
        (DEFINITE,),
    ),
    "qr": (lnp.linalg.qr, (SQUARE,)),
    "qr, tall": (lnp.linalg.qr, (TALL,)),
    "qr, wide": (lnp.linalg.qr, (WIDE,)),
    "qr, complete": (lambda x: lnp.linalg.qr(x, mode="complete"), (WIDE,)),
    "solve": (lnp.linalg.solve, (SQUARE, RIGHT)),
    "solve of a vector": (lnp.linalg.solve, (SQUARE, RIGHT[:, 0])),
    "solve, broadcast": (lnp.linalg.solve, (SQUARE, with_condition((2, 4, 2), 3))),
    "solve_triangular": (lambda a, b: lnp.linalg.solve_triangular(a, b, "T", True), (TRIANGLE, RIGHT)),
    "inv": (lnp.linalg.inv, (BATCH,)),
    "det": (lnp.linalg.det, (BATCH,)),
    "slogdet": (lambda x: lnp.linalg.slogdet(x).logabsdet, (SQUARE,)),
    "eigh": (lnp.linalg.eigh, (DEFINITE,)),
    "eigh, one triangle": (lambda x: lnp.linalg.eigh(x, "U"), (DEFINITE,)),
    "eigvalsh": (lnp.linalg.eigvalsh, (definite((2, 3, 3), 8),)),
    "svd": (lnp.linalg.svd, (SQUARE,)),
    "svd, tall": (lambda x: lnp.linalg.svd(x, full_matrices=False), (TALL,)),
    "svd, wide": (lambda x: lnp.linalg.svd(x, full_matrices=False), (WIDE,)),
    "svdvals": (lnp.linalg.svdvals, (WIDE,)),
    "pinv": (lnp.linalg.pinv, (TALL,)),
    "pinv, wide": (lnp.linalg.pinv, (WIDE,)),
    "pinv of lower rank": (lambda x, y: lnp.linalg.pinv(x @ y, rtol=1e-4), (TALL[:, :2], WIDE[:2])),
    "lstsq": (lambda a, b: lnp.linalg.lstsq(a, b)[0], (TALL, with_condition((5, 2), 3))),
    "nuclear norm": (lambda x: lnp.linalg.matrix_norm(x, ord="nuc"), (TALL,)),
    "spectral norm": (lambda x: lnp.linalg.norm(x, 2), (TALL,)),
    "norm": (lambda x: lnp.linalg.vector_norm(x, ord=3, axis=1), (TALL,)),
    "cond": (lnp.linalg.cond, (SQUARE,)),
    "matrix_power": (lambda x: lnp.linalg.matrix_power(x, -2), (SQUARE,)),
}


def directions_for(arrays: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [random.normal(size=array.shape) for array in arrays]


def along(gradients: Any, directions: list[np.ndarray]) -> float:
    return float(sum(np.sum(np.asarray(g) * d) for g, d in zip(gradients, directions, strict=True)))


@pytest.mark.parametrize("name", CASES)
def test_reverse_mode(name: str) -> None:
    function, arrays = CASES[name]
    loss, places = weighted(function), tuple(range(len(arrays)))
    directions = directions_for(arrays)
    expected = slope(loss, arrays, directions)
    gradient = lx.grad(loss, argnums=places)
    exact = interpret(traced(lambda *x: gradient(*x), *arrays), *(array.astype("d") for array in arrays))
    np.testing.assert_allclose(along(exact, directions), expected, rtol=1e-6, atol=1e-6)
    size = max(1, sum(float(np.abs(g * d).sum()) for g, d in zip(exact, directions, strict=True)))
    for found in (gradient(*arrays), lx.compile(gradient)(*arrays)):
        np.testing.assert_allclose(along(found, directions), expected, rtol=0, atol=1e-4 * size)


@pytest.mark.parametrize("name", CASES)
def test_forward_mode_is_the_transpose(name: str) -> None:
    function, arrays = CASES[name]
    loss, directions = weighted(function), directions_for(arrays)
    graph = traced(
        lambda *x: lx.jvp(loss, x[: len(arrays)], x[len(arrays) :])[1], *arrays, *map(np.float32, directions)
    )
    (tangent,) = interpret(graph, *(array.astype("d") for array in arrays), *directions)
    np.testing.assert_allclose(tangent, slope(loss, arrays, directions), rtol=1e-6, atol=1e-6)


SECOND = [name for name in CASES if "batch" not in name and "lower rank" not in name]


@pytest.mark.parametrize("name", SECOND)
def test_second_order(name: str) -> None:
    """The gradient of a mixture of the gradient's elements."""
    function, arrays = CASES[name]
    places = tuple(range(len(arrays)))
    mixed = weighted(lx.grad(weighted(function), argnums=places))
    directions = directions_for(arrays)
    exact = interpret(traced(lambda *x: lx.grad(mixed, argnums=places)(*x), *arrays), *(a.astype("d") for a in arrays))
    expected = slope(mixed, arrays, directions)
    np.testing.assert_allclose(along(exact, directions), expected, rtol=1e-5, atol=1e-5 * max(1, abs(expected)))


def test_under_vmap() -> None:
    matrices = definite((3, 4, 4), 8)
    for function in (
        lnp.linalg.cholesky,
        lnp.linalg.eigh,
        lnp.linalg.svd,
        lnp.linalg.inv,
        lnp.linalg.det,
        lnp.linalg.pinv,
    ):
        gradient = lx.grad(weighted(function))
        found = np.asarray(lx.vmap(gradient)(matrices))
        for one, matrix in zip(found, matrices, strict=True):
            np.testing.assert_allclose(one, np.asarray(gradient(matrix)), rtol=0, atol=2e-4 * max(1, np.abs(one).max()))


def test_values_alone_have_gradients_where_they_are_equal() -> None:
    """The sum of eigenvalues is the trace, also of the unit matrix; that of singular values has the sum's gradient."""
    unit = np.eye(3, dtype=np.float32)
    for function in (
        lnp.linalg.eigvalsh,
        lnp.linalg.svdvals,
        lambda x: lnp.linalg.eigh(x)[0],
        lambda x: lnp.linalg.svd(x)[1],
    ):
        gradient = lx.grad(lambda x, function=function: lnp.sum(function(x)))(unit)
        np.testing.assert_allclose(np.asarray(gradient), unit, rtol=0, atol=1e-6)


def test_larger_matrices_on_the_device() -> None:
    """Those that are taken apart in several kernels."""
    matrix = definite((70, 70), 8)
    for function in (lnp.linalg.cholesky, lnp.linalg.inv, lambda x: lnp.linalg.qr(x).R):
        gradient = lx.grad(weighted(function))
        (exact,) = interpret(traced(gradient, matrix), matrix.astype("d"))
        found = np.asarray(gradient(matrix))
        np.testing.assert_allclose(found, exact, rtol=0, atol=2e-5 * np.abs(exact).max())


def test_what_has_no_gradient_says_so() -> None:
    with pytest.raises(NotImplementedError, match="svd: full_matrices=True of a matrix that is not square"):
        lx.grad(lambda x: lnp.sum(lnp.linalg.svd(x).U))(TALL)
    with pytest.raises(NotImplementedError, match="qr: mode='complete' of a matrix that is not square"):
        lx.grad(lambda x: lnp.sum(lnp.linalg.qr(x, mode="complete").Q))(TALL)


def test_gaps_of_svd_are_no_differences_of_squares() -> None:
    """A device that adds to a product without rounding it makes x*x - x*x a rounding error, to be divided by."""

    def loss(x: Any) -> Any:
        left, values, right = lx.linalg.svd(x, full_matrices=False)
        return lnp.sum(left) + lnp.sum(values) + lnp.sum(right)

    def is_square(node: Any) -> bool:
        while node.op in ("broadcast", "reshape", "transpose"):
            (node,) = node.operands
        return node.op == "multiply" and node.operands[0] is node.operands[1]

    graph = lx.trace(lx.grad(loss))(lx.ShapeDtype((3, 3), "float32"))
    differences = [node for node in graph.nodes if node.op == "subtract"]
    assert differences and not any(all(map(is_square, node.operands)) for node in differences)
