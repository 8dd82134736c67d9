"""put at positions outside of the array: NumPy's modes, and positions that are computed."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ArrayIndexError

PLACES = ([0, 3, 7], [-1, -7, 2], [[1, 9], [-3, 5]], [400, -400, 120])


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("places", PLACES, ids=str)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_modes_of_numpy(mode: Any, places: Any, dtype: str) -> None:
    """Narrow positions reach no element of 300 that they cannot name, and bounds are not those of their dtype."""
    positions = np.array(places).astype(dtype)
    for size in (5, 300):
        expected = np.arange(size, dtype=np.float32)
        np.put(expected, positions, [90, 80], mode=mode)
        for ind in (positions, lnp.asarray(positions)):
            found = lnp.put(lnp.arange(size, dtype="float32"), ind, np.float32([90, 80]), mode, inplace=False)
            np.testing.assert_array_equal(found, expected)
        held = lnp.arange(size, dtype="float32")
        lnp.put(held, positions, np.float32([90, 80]), mode=mode)
        np.testing.assert_array_equal(held, expected)


def test_computed_positions_without_a_mode_are_moved_to_the_nearer_end() -> None:
    """Negative ones count from the end first, as in JAX 0.10.2; positions that are known are refused."""
    put = lambda ind: lnp.put(np.zeros((2, 3), "f"), ind, np.float32([1, 2, 3]), inplace=False)  # noqa: E731
    for found in (put(lnp.array([9, -2, -8])), lx.jit(put)(np.array([9, -2, -8]))):
        np.testing.assert_array_equal(found, [[3, 0, 0], [0, 2, 1]])
    with pytest.raises(ArrayIndexError, match="index 9 is outside"):
        put([9, 0])


def test_large_positions_without_a_sign_are_at_the_end() -> None:
    found = lnp.put(np.zeros(4, "f"), np.uint32([3_000_000_000]), 1, "clip", inplace=False)
    np.testing.assert_array_equal(found, [0, 0, 0, 1])


def test_an_array_without_elements() -> None:
    assert lnp.put(np.zeros(0, "f"), np.zeros(0, int), [], "wrap", inplace=False).shape == (0,)
