"""Derivatives of functions that are composed here, against closed forms. Each is scaled: 3 times the upstream."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from tests.lavax.numpy.arrays import F32, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([-30, -2, -0.5, 0, 1e-3, 0.5, 1, 2, 30], F32)
POSITIVE = np.array([0.1, 0.5, 1, 2, 7], F32)
# name: (function, where, derivative, second derivative)
SMOOTH: dict[str, tuple[Callable[..., Any], np.ndarray, Callable[..., Any], Callable[..., Any]]] = {
    "sinh": (lnp.sinh, X, np.cosh, np.sinh),
    "cosh": (lnp.cosh, X, np.sinh, np.cosh),
    "softplus": (nn.softplus, X, special.expit, lambda x: special.expit(x) * special.expit(-x)),
    "sigmoid": (
        nn.sigmoid,
        X,
        lambda x: special.expit(x) * special.expit(-x),
        lambda x: special.expit(x) * special.expit(-x) * -np.tanh(x / 2),
    ),
    "logaddexp": (
        lambda x: lnp.logaddexp(1.0, x),
        X,
        lambda x: special.expit(x - 1),
        lambda x: special.expit(x - 1) * special.expit(1 - x),
    ),
    "tan": (lnp.tan, X[1:-1] * 0.5, lambda x: 1 / np.cos(x) ** 2, lambda x: 2 * np.tan(x) / np.cos(x) ** 2),
    "square": (lnp.square, X, lambda x: 2 * x, lambda x: 2 + 0 * x),
    "reciprocal": (lnp.reciprocal, POSITIVE, lambda x: -1 / x**2, lambda x: 2 / x**3),
    "exp2": (lnp.exp2, X, lambda x: np.log(2) * 2**x, lambda x: np.log(2) ** 2 * 2**x),
    "log10": (lnp.log10, POSITIVE, lambda x: 1 / (x * np.log(10)), lambda x: -1 / (x**2 * np.log(10))),
    "x**3": (lambda x: x**3, X, lambda x: 3 * x**2, lambda x: 6 * x),
    "x**-2": (lambda x: x**-2, POSITIVE, lambda x: -2 * x**-3, lambda x: 6 * x**-4),
    "x**0.5": (lambda x: x**0.5, POSITIVE, lambda x: 0.5 * x**-0.5, lambda x: -0.25 * x**-1.5),
    "x**0": (lambda x: x**0, X, lambda x: 0 * x, lambda x: 0 * x),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives(name: str) -> None:
    function, x, first, second = SMOOTH[name]
    exact = x.astype(np.float64)
    slope = lx.grad(lambda x: 3 * function(x).sum())
    np.testing.assert_allclose(np.asarray(slope(x)), 3 * first(exact), rtol=1e-5, atol=1e-6)
    curvature = lx.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(np.asarray(curvature(x)), 3 * second(exact), rtol=1e-5, atol=1e-6)


def test_at_the_ends_of_the_range() -> None:
    np.testing.assert_allclose(np.asarray(lx.grad(lnp.sinh)(np.float32(-88))), np.cosh(88), rtol=1e-4)
    np.testing.assert_allclose(np.asarray(lx.grad(lnp.cosh)(np.float32(-88))), np.sinh(-88), rtol=1e-4)
    for x, slope in ((-np.inf, 0), (np.inf, 1), (-500, 0), (500, 1)):
        assert float(lx.grad(nn.softplus)(np.float32(x))) == slope


def test_relu_is_flat_at_zero() -> None:
    slope = lx.grad(lambda x: nn.relu(x).sum())
    np.testing.assert_array_equal(np.asarray(slope(np.array([-1, 0, 2], F32))), [0, 0, 1])


def probabilities(x: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(special.softmax(x.astype(np.float64), axis))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_probabilities(axis: int) -> None:
    x, weight = sample((3, 4), low=-5, high=5), sample((3, 4), seed=1)
    p = probabilities(x, axis)
    slopes = {
        nn.softmax: p * (weight - (weight * p).sum(axis, keepdims=True)),
        nn.log_softmax: weight - p * weight.sum(axis, keepdims=True),
    }
    for function, expected in slopes.items():
        found = lx.grad(lambda x: (weight * function(x, axis)).sum())(x)  # noqa: B023
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)
    found = lx.grad(lambda x: 3 * nn.logsumexp(x, axis).sum())(x)
    np.testing.assert_allclose(np.asarray(found), 3 * p, rtol=1e-5)


def test_logsumexp_where_some_are_infinite_and_with_factors() -> None:
    x = np.array([-np.inf, 0, 1], F32)
    np.testing.assert_allclose(np.asarray(lx.grad(nn.logsumexp)(x)), probabilities(x, 0), rtol=1e-5)
    x, b = sample((4,)), sample((4,), low=0.1)
    grown = np.exp(x.astype(np.float64))
    by_x, by_b = lx.grad(lambda x, b: nn.logsumexp(x, b=b), argnums=(0, 1))(x, b)
    np.testing.assert_allclose(np.asarray(by_x), b * grown / (b * grown).sum(), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(by_b), grown / (b * grown).sum(), rtol=1e-5)


def test_logsumexp_has_the_curvature_of_a_softmax() -> None:
    x = sample((4,))
    p = probabilities(x, 0)
    direction = sample((4,), seed=1)
    found = lx.grad(lambda x: (lx.grad(nn.logsumexp)(x) * direction).sum())(x)
    np.testing.assert_allclose(np.asarray(found), p * direction - p * (p @ direction), rtol=1e-4, atol=1e-6)


def test_moments() -> None:
    x = sample((3, 4))
    centred = x - x.mean(0)
    slope = np.asarray(lx.grad(lambda x: (lnp.var(x, 0, ddof=1) * 3).sum())(x))
    np.testing.assert_allclose(slope, 3 * centred, rtol=1e-5, atol=1e-6)
    slope = np.asarray(lx.grad(lambda x: (lnp.std(x, 0) * 3).sum())(x))
    np.testing.assert_allclose(slope, centred / x.std(0), rtol=1e-5, atol=1e-6)
    found = lx.grad(lambda x: lnp.var(x, 0).sum())(np.array([[1, 2, 3], [4, 5, 6]], F32))
    np.testing.assert_allclose(np.asarray(found), [[-1.5] * 3, [1.5] * 3])


def test_what_is_read_twice_gets_both_gradients() -> None:
    x, weight = sample((3, 4)), sample((5, 4), seed=1)
    expected = np.zeros((3, 4))
    np.add.at(expected, [2, 0, 2, 1, 2], weight)
    places = np.array([2, 0, -1, 1, 2], np.int32)
    for read in (lambda x: x[places], lambda x: x[lnp.array(places)], lambda x: lnp.take(x, places, 0)):
        found = lx.grad(lambda x: (read(x) * weight).sum())(x)  # noqa: B023
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)
    labels = np.array([[3], [0], [3]], np.int32)
    found = lx.grad(lambda x: 3 * lnp.take_along_axis(x, labels, -1).sum())(x)
    np.testing.assert_array_equal(np.asarray(found), 3 * np.eye(4)[labels[:, 0]])


def test_slices_diagonals_and_padding() -> None:
    x = sample((4, 4))
    found = lx.grad(lambda x: (x[::-2, 1:3] ** 2).sum())(x)
    expected = np.zeros((4, 4))
    expected[::-2, 1:3] = 2 * x[::-2, 1:3]
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(lx.grad(lambda x: 2 * lnp.einsum("ii", x))(x)), 2 * np.eye(4))
    found = lx.grad(lambda x: (lnp.pad(x, 1, constant_values=2) ** 3).sum())(x)
    np.testing.assert_allclose(np.asarray(found), 3 * x**2, rtol=1e-5)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk->ki", ((2, 3), (3, 4))),
        ("bij,jk,bk->bi", ((2, 3, 4), (4, 5), (2, 5))),
        ("ii,...i->...", ((3, 3), (2, 3))),
    ],
)
def test_contractions(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """A contraction is linear in each operand, so the slope along a direction is its value there."""
    arrays = [sample(shape, seed=place) for place, shape in enumerate(shapes)]
    weight = sample(np.einsum(subscripts, *arrays).shape, seed=9)
    slopes = lx.grad(lambda *x: (lnp.einsum(subscripts, *x) * weight).sum(), argnums=tuple(range(len(arrays))))(*arrays)
    for place, slope in enumerate(slopes):
        direction = sample(shapes[place], seed=10 + place)
        along = [direction if place == other else array for other, array in enumerate(arrays)]
        expected = (np.einsum(subscripts, *(array.astype(np.float64) for array in along)) * weight).sum()
        np.testing.assert_allclose((np.asarray(slope) * direction).sum(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["max", "min", "ptp"])
def test_gradients_of_the_extremum_of_a_row_with_nan_are_nan(name: str) -> None:
    x = np.array([[1, np.nan, 3], [1, 2, 3]], F32)
    expected = {"max": [0, 0, 3], "min": [3, 0, 0], "ptp": [-3, 0, 3]}[name]
    function = getattr(lnp, name)
    gradient = lx.grad(lambda x: 3 * lnp.sum(function(x, axis=1)))(x)
    np.testing.assert_array_equal(np.asarray(gradient), [[np.nan] * 3, expected])
    _, tangent = lx.jvp(lambda x: 3 * function(x, axis=1), (x,), (np.array([[1, 1, 1], [1, 2, 3]], F32),))
    np.testing.assert_array_equal(np.asarray(tangent), [np.nan, {"max": 9, "min": 3, "ptp": 6}[name]])


def test_gradients_of_the_extremum_over_a_named_axis_with_nan_are_nan() -> None:
    def function(x: Any) -> Any:
        return lnp.sum(lx.vmap(lambda row: lx.lax.pmax(row, "rows"), axis_name="rows")(x))

    x = np.array([[1, np.nan], [2, 2]], F32)
    np.testing.assert_array_equal(np.asarray(lx.grad(function)(x)), [[0, np.nan], [2, np.nan]])
