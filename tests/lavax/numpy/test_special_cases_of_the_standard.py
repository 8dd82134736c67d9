"""Special cases on which the array API standard (2024.12), NumPy, JAX and PyTorch do not all agree."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

INF, NAN = float("inf"), float("nan")


def test_unsigned_and_signed_integers_stay_within_32_bits() -> None:
    unsigned, signed = lnp.asarray([1], dtype="uint32"), lnp.asarray([-1], dtype="int32")
    assert (unsigned + signed).dtype == np.int32
    assert lnp.result_type(lnp.uint32, lnp.int8) == np.int32
    with lx.enable_x64():
        assert (unsigned + signed).dtype == np.int64
        assert (unsigned + lnp.asarray([1], dtype="int16")).dtype == np.int64
    assert (lnp.asarray([1], dtype="int64") + unsigned).dtype == np.int64  # an operand that has 64 bits keeps them


def test_floor_division_of_and_by_infinities() -> None:
    x = np.array([INF, -INF, INF, -INF, 3, -3, 3, -3, 0, -0.0, INF], "f")
    y = np.array([2, 2, -2, -2, INF, INF, -INF, -INF, INF, INF, INF], "f")
    right = np.array([INF, -INF, -INF, INF, 0, -0.0, -0.0, 0, 0, -0.0, NAN], "f")
    found = np.asarray(lnp.floor_divide(x, y))
    np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(right[:-1]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_sign_of_a_nan(dtype: str) -> None:
    x = lnp.asarray(np.copysign([NAN, NAN, 1, 0], [-1, 1, -1, -1]), dtype=dtype)
    assert np.asarray(lnp.signbit(x)).tolist() == [True, False, True, True]


@pytest.mark.parametrize("dtype", [lnp.float16, lnp.bfloat16, lnp.float32, lnp.float64])
def test_limits_are_python_numbers(dtype: Any) -> None:
    limits = lnp.finfo(dtype)
    assert all(type(getattr(limits, name)) is float for name in ("eps", "max", "min", "smallest_normal", "tiny"))
    assert type(limits.bits) is int and limits.dtype == dtype and limits.eps == 2.0**limits.machep
    assert float(lnp.asarray(1 + limits.eps, dtype=dtype)) == 1 + limits.eps


def test_limits_of_integers_are_python_numbers() -> None:
    limits = lnp.iinfo(lnp.int8)
    assert (type(limits.min), type(limits.max), type(limits.bits)) == (int, int, int)
    assert (limits.min, limits.max, limits.bits, limits.dtype) == (-128, 127, 8, np.int8)


@pytest.mark.parametrize("derivative", [lx.grad(lnp.abs), lambda x: lx.jvp(lnp.abs, (x,), (1.0,))[1]])
def test_the_derivative_of_abs_at_zero(derivative: Any) -> None:
    """0, the subgradient of least size, as in PyTorch; JAX 0.10.2 gives 1."""
    assert float(derivative(0.0)) == 0


def test_the_derivative_of_norm_at_zero() -> None:
    """0, the subgradient of least size, as in PyTorch; JAX 0.10.2 gives NaN."""
    np.testing.assert_array_equal(lx.grad(lx.linalg.norm)(lnp.zeros(2)), [0, 0])
