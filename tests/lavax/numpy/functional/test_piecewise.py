"""Piecewise functions: results as in NumPy, arguments passed on, gradients of the function that applies alone."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.closeness import close

X = np.array([[-2.0, -0.5, 0.0], [0.5, 4.0, 9.0]], "f")


def test_arguments_and_keywords_are_passed_on() -> None:
    found = lnp.piecewise(X, [X < 0, X > 1], [lambda x, a, b: a - x * b, lambda x, a, b: x**a], 2, b=3)
    np.testing.assert_array_equal(found, np.where(X < 0, 2 - X * 3, np.where(X > 1, X**2, 0)))


def test_conditions_are_rows_of_an_array_too() -> None:
    rows = np.stack([X > -1, X > 3])
    for condlist in (rows, lnp.asarray(rows), list(rows)):
        np.testing.assert_array_equal(
            lnp.piecewise(X, condlist, [np.float32(1), lambda x: -x, 7]), np.where(X > 3, -X, np.where(X > -1, 1, 7))
        )
    np.testing.assert_array_equal(lnp.piecewise(X, X > 0, [lambda x: x + 1]), np.where(X > 0, X + 1, 0))
    np.testing.assert_array_equal(lnp.piecewise(X, [True], [lambda x: x + 1]), X + 1)
    with pytest.raises(ShapeError, match="2 conditions for 1 functions"):
        lnp.piecewise(X, rows, [lnp.sin])


def test_results_have_the_dtype_and_shape_of_the_argument() -> None:
    counts = np.arange(4, dtype=np.int32)
    found = lnp.piecewise(counts, [counts > 1], [2.7, lambda x: x / 2])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [0, 0, 2, 2])
    assert lnp.piecewise(np.float32(3), [True], [lnp.sqrt]).shape == ()
    assert lnp.piecewise(np.zeros((0, 3), "f"), [np.zeros((0, 3), bool)], [lnp.sqrt]).shape == (0, 3)


def test_gradients_pass_through_the_function_that_applies() -> None:
    def total(x: lx.Array, scale: lx.Array) -> lx.Array:
        pieces = [lambda x: lnp.sqrt(x * scale), lambda x: scale * lnp.log(-x), 0.0]
        return lnp.sum(lnp.piecewise(x, [x > 0, x < -1], pieces))

    for gradient in (lx.grad(total, (0, 1)), lx.compile(lx.grad(total, (0, 1)))):
        by_x, by_scale = gradient(X, np.float32(1))
        close(by_x, [[-0.5, 0, 0], [0.5**0.5, 0.25, 1 / 6]])
        close(by_scale, np.log(2) + (0.5**0.5 + 2 + 3) / 2)
