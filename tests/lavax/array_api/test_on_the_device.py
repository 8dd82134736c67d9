"""What the device alone can get wrong: integers of two widths, signs of NaNs, dtypes of what comes from the host."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32")
NUMBERS = (-7, -1, 0, 3, 120)
FUNCTIONS = ("floor_divide", "remainder", "less", "less_equal", "greater_equal", "equal", "minimum", "multiply")
NANS = {"nan": np.nan, "-nan": -np.nan}
FLOATS = ("float16", "float32", "float64")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_of_two_widths(name: str) -> None:
    for left, right in product(SIGNED, SIGNED + UNSIGNED):
        x, y = (grid.ravel() for grid in np.meshgrid(NUMBERS, [n for n in NUMBERS if n] if right in SIGNED else (1, 7)))
        x, y = x.astype(left), y.astype(right)
        with lx.enable_x64():
            found = np.asarray(getattr(lnp, name)(lnp.asarray(x), lnp.asarray(y)))
        expected = getattr(np, name)(x, y)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"{left} and {right}")


@pytest.mark.parametrize("bound", [-129, -128, -1, 0, 5, 127, 128, 2**40])
@pytest.mark.parametrize("dtype", SIGNED[:3])
def test_widened_integers_beside_a_number(dtype: str, bound: int) -> None:
    def compared(x: Any) -> list[Any]:
        wide = x.astype("int64")
        return [wide < bound, wide <= bound, wide > bound, wide >= bound, wide == bound, wide != bound, bound < wide]

    x = np.array([-128, -2, -1, 0, 4, 5, 127], dtype)
    np.testing.assert_array_equal(lx.compile(compared)(lnp.asarray(x)), compared(x))


# Every function is first called with the one NaN, and then with the other: nothing of the first may be kept for it.
@pytest.mark.parametrize("order", [("nan", "-nan"), ("-nan", "nan")])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "sign",
    [
        lambda nan, dtype: lnp.signbit(lnp.asarray(nan, dtype=dtype)),
        lambda nan, dtype: lnp.signbit(lnp.full((2,), nan, dtype))[0],
        lambda nan, dtype: lnp.copysign(lnp.ones(2, dtype), nan)[0] < 0,
        lambda nan, dtype: lx.compile(lambda x: lnp.copysign(x, nan))(lnp.ones(2, dtype))[0] < 0,
        lambda nan, dtype: lnp.signbit(lnp.pad(lnp.ones(1, dtype), 1, constant_values=nan))[0],
        lambda nan, dtype: lx.compile(lambda x: lnp.signbit(lnp.where(x > 0, nan, x)))(lnp.ones(2, dtype))[0],
    ],
)
def test_the_sign_of_a_nan(sign: Callable[[float, str], Any], dtype: str, order: tuple[str, str]) -> None:
    assert [bool(sign(NANS[name], dtype)) for name in order] == [name == "-nan" for name in order]


def test_nans_of_both_signs_in_one_program() -> None:
    signs = lx.compile(lambda x: (lnp.copysign(x, -np.nan), lnp.copysign(x, np.nan)))(lnp.ones(3))
    assert [float(sign[0]) for sign in signs] == [-1.0, 1.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_decompositions_on_the_host_keep_64_bits_without_them_enabled(compiled: bool) -> None:
    def decomposed(matrix: Any) -> tuple[Any, ...]:
        linalg = lnp.linalg
        return *linalg.svd(matrix), *linalg.eigh(matrix), *linalg.eig(matrix), linalg.pinv(matrix)

    matrix = np.array([[2, 1j], [-1j, 3]], "complex128")
    found = (lx.compile(decomposed) if compiled else decomposed)(lnp.asarray(matrix, dtype="complex128"))
    u, s, vh, values, vectors, _, _, inverse = (np.asarray(part) for part in found)
    kinds = ["complex128" if place not in (1, 3) else "float64" for place in range(8)]
    assert [str(np.dtype(part.dtype)) for part in found] == kinds
    for whole in (u * s @ vh, vectors * values @ vectors.conj().T, np.linalg.inv(inverse)):
        np.testing.assert_allclose(whole, matrix, rtol=1e-13, atol=1e-13)
