"""Updates of arrays of 64 bits by Python's numbers, which float32 and int32 would not hold."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp


@pytest.mark.parametrize(
    "start, number",
    [(np.ones(3), 0.1), (np.ones(3) * 1j, 0.1 + 0.7j), (np.ones(3) * 1j, 0.3), (np.ones(3, np.int64), 1 << 40)],
)
def test_a_number_keeps_its_precision(start: np.ndarray, number: Any) -> None:
    want = start.copy()
    want[1] = number
    with lx.enable_x64():
        x = lnp.asarray(start)
        every = x.at[1].set(number), x.at[..., 1].set(number), x.at[np.array([1])].set(number)
        masked = x.at[np.array([False, True, False])].set(number)
        assert all(np.array_equal(np.asarray(found), want) for found in (*every, masked))


def test_products_and_sums_keep_it_too() -> None:
    with lx.enable_x64():
        x = lnp.asarray(np.full(2, 3.0))
        assert np.asarray(x.at[0].multiply(0.1))[0] == 3.0 * 0.1
        assert np.asarray(x.at[0].add(1 / 3))[0] == 3.0 + 1 / 3
