"""Derivatives of elementwise functions at the edges of their domains and far out, against closed forms."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.numpy.arrays import F32

pytestmark = pytest.mark.usefixtures("reference_backend")

INF = np.inf
# name: (function, where, derivative there)
EDGES: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "asin": (lnp.asin, [-1, 0, 0.999999, 1], [INF, 1, 1 / np.sqrt(1 - np.float64(F32.type(0.999999)) ** 2), INF]),
    "acos": (lnp.acos, [-1, 0, 1], [-INF, -1, -INF]),
    "atan": (lnp.atan, [-INF, -1e10, 0, INF], [0, 1e-20, 1, 0]),
    "asinh": (lnp.asinh, [-1e30, 0, 1e30], [1e-30, 1, 1e-30]),
    "acosh": (lnp.acosh, [1, 2, 1e30], [INF, 1 / np.sqrt(3), 1e-30]),
    "atanh": (lnp.atanh, [-1, 0, 1], [INF, 1, INF]),
    "cbrt": (lnp.cbrt, [-8, 8, 0], [1 / 12, 1 / 12, INF]),
    "exp2": (lnp.exp2, [0, 3], [np.log(2), 8 * np.log(2)]),
    "log2": (lnp.log2, [1, 4, 0], [1 / np.log(2), 0.25 / np.log(2), INF]),
    "tan": (lnp.tan, [0, np.pi / 4], [1, 2]),
    "sinc": (lnp.sinc, [0, 1e-4, 1, 2], [0, -np.pi**2 / 3 * 1e-4, -1, 0.5]),
    "remainder": (lambda x: x % 3, [-1, 3, 6, 7], [1, 1, 1, 1]),
    "the divisor of a remainder": (lambda y: 7 % y, [2, -2, 5], [-3, 4, -1]),
    "floor_divide": (lambda x: x // 3, [-1, 3, 6], [0, 0, 0]),
    "the size of copysign": (lambda x: lnp.copysign(x, -1.0), [-2, 3], [1, -1]),
    "the sign of copysign": (lambda x: lnp.copysign(2.0, x), [-2, 3], [0, 0]),
    "ldexp": (lambda x: lnp.ldexp(x, 5), [-1, 0, 3], [32, 32, 32]),
    "frexp": (lambda x: lnp.frexp(x)[0], [3, 0.5], [0.25, 1]),
    "modf": (lambda x: lnp.modf(x)[0], [-2.5, 3.25], [1, 1]),
    "whole numbers": (lambda x: lnp.ceil(x) + lnp.round(x) + lnp.trunc(x) + lnp.rint(x), [-2.5, 3], [0, 0]),
    "decimals": (lambda x: lnp.round(x, 2) + lnp.round(x, -1) + lnp.round(x, 60), [-2.5, 1e30], [0, 0]),
    "nan_to_num": (lnp.nan_to_num, [np.nan, INF, 2], [0, 0, 1]),
    "heaviside": (lambda x: lnp.heaviside(x, 0.5), [-1, 0, 2], [0, 0, 0]),
}


@pytest.mark.parametrize("name", EDGES)
def test_derivatives(name: str) -> None:
    function, where, slopes = EDGES[name]
    found = lx.grad(lambda x: function(x).sum())(np.array(where, F32))
    np.testing.assert_allclose(np.asarray(found), slopes, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("x", "y"), [(1, 2), (-3, 0.5), (0, -2), (5, 0), (1e30, 1e25), (1e-30, 3e-30), (-1e-30, 1e-20), (INF, 1), (1, INF)]
)
def test_the_gradient_of_an_angle(x: float, y: float) -> None:
    """y / (x² + y²) and -x / (x² + y²) for the ordinate x and the abscissa y, without overflow or underflow."""
    found = lx.grad(lnp.atan2, argnums=(0, 1))(F32.type(x), F32.type(y))
    if np.isinf([x, y]).any():
        expected = [0.0, 0.0]
    else:
        large = max(abs(x), abs(y))
        square = (x / large) ** 2 + (y / large) ** 2
        expected = [y / large / square / large, -x / large / square / large]
    np.testing.assert_allclose([float(one) for one in found], expected, rtol=1e-6)


def test_the_gradient_of_an_angle_at_the_origin_is_zero() -> None:
    zero = F32.type(0)
    assert [float(one) for one in lx.grad(lnp.atan2, argnums=(0, 1))(zero, zero)] == [0, 0]
    assert [float(one) for one in lx.grad(lnp.hypot, argnums=(0, 1))(zero, zero)] == [0, 0]


@pytest.mark.parametrize(("x", "y"), [(3, 4), (1, 1), (-5, 0), (1e30, -1e30), (1e-30, 1e-30), (0, 2)])
def test_the_gradient_of_a_length(x: float, y: float) -> None:
    found = lx.grad(lnp.hypot, argnums=(0, 1))(F32.type(x), F32.type(y))
    length = np.hypot(x, y)
    np.testing.assert_allclose([float(one) for one in found], [x / length, y / length], rtol=1e-6)


def second(function: Callable[..., Any]) -> Callable[..., Any]:
    """Σ of the Hessian's rows: the derivatives of the sum of the first derivatives."""
    count = (0, 1)
    return lx.grad(lambda x, y: sum(lx.grad(function, argnums=count)(x, y)), argnums=count)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("x", "y"), [(1.0, 1.0), (3.0, 4.0), (-2.0, 0.5)])
def test_second_derivatives_of_lengths_and_angles(x: float, y: float) -> None:
    r = np.hypot(x, y)
    found = second(lnp.hypot)(F32.type(x), F32.type(y))
    expected = [(y * y - x * y) / r**3, (x * x - x * y) / r**3]
    np.testing.assert_allclose([float(one) for one in found], expected, rtol=1e-5, atol=1e-6)
    found = second(lnp.atan2)(F32.type(x), F32.type(y))
    expected = [(x * x - y * y - 2 * x * y) / r**4, (x * x - y * y + 2 * x * y) / r**4]
    np.testing.assert_allclose([float(one) for one in found], expected, rtol=1e-5, atol=1e-6)


def test_sinc_has_derivatives_of_every_order() -> None:
    x = np.array([0, 1e-3, 0.2, 0.26, 1, 2.5], F32)
    curvature = lx.grad(lambda x: lx.grad(lambda x: lnp.sinc(x).sum())(x).sum())(x)
    t = np.pi * x.astype(np.float64)
    safe = np.where(np.abs(t) < 0.1, 1, t)
    exact = np.pi**2 * (-np.sin(safe) / safe - 2 * np.cos(safe) / safe**2 + 2 * np.sin(safe) / safe**3)
    exact = np.where(np.abs(t) < 0.1, np.pi**2 * (-1 / 3 + t**2 / 10), exact)
    np.testing.assert_allclose(np.asarray(curvature), exact, rtol=1e-4, atol=1e-5)
