"""The special cases of the standard in float64 and float16, on the device; NumPy's results are the standard's.

tests/lavax/numpy/test_special_values.py has float32.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests import denormals
from tests.lavax.array_api import standard

DTYPES = {"float64": 1e-13, "float16": 3e-3}
OF_OTHER_DTYPES = {"imag", "bitwise_invert"}
# The standard has other results for infinities than NumPy.
OF_ITS_OWN = {"floor_divide"}


@pytest.fixture(autouse=True)
def with_64_bits() -> Iterator[None]:
    with lx.enable_x64():
        yield


def special(dtype: str) -> np.ndarray:
    limits = np.finfo(dtype)
    largest, smallest = float(limits.max), float(limits.tiny)
    both = [np.inf, 0, 1, 0.5, 2, 3, 2.5, 7, largest, 2 * smallest, 1e-3, 1e4]
    return np.array([np.nan, *both, *(-number for number in both), 1.5, 0.3, 1023.5], dtype)


def assert_same(name: str, *arrays: np.ndarray) -> None:
    """Special values and signs of zeros exactly; where a device flushes denormal numbers, zeros in their place."""
    with np.errstate(all="ignore"):
        expected = np.asarray(getattr(np, name)(*arrays))
    found = np.asarray(getattr(lnp, name)(*map(lnp.asarray, arrays)))
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        dtype = expected.dtype
        smallest = np.finfo(dtype).tiny
        flushed = (np.abs(expected) < smallest) & (expected != 0) & (found == 0)
        either = name in ("maximum", "minimum", "nextafter") and expected == 0  # of equal zeros either may be meant
        wrong = (np.signbit(found) != np.signbit(expected)) & ~np.isnan(expected) & ~flushed & ~np.asarray(either)
        assert not wrong.any(), [array[wrong] for array in arrays]
        found, expected = found[~flushed].astype("f8"), expected[~flushed].astype("f8")
        bound = smallest if denormals.are_flushed() else 0
        if name == "logaddexp":  # the sum of an operand and the logarithm of at most 2
            bound = np.finfo(dtype).eps
        np.testing.assert_allclose(found, expected, rtol=DTYPES[arrays[0].dtype.name], atol=float(bound))
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted({*standard.UNARY} - OF_OTHER_DTYPES))
def test_functions_of_one_argument(name: str, dtype: str) -> None:
    assert_same(name, special(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in standard.BINARY if "bitwise" not in name and name not in OF_ITS_OWN])
def test_functions_of_two_arguments(name: str, dtype: str) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(special(dtype), special(dtype)))
    assert_same(name, x, y)
