"""The number of an iteration yields to the dtype of what it is combined with."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax

BOUNDS: dict[str, tuple[Any, Any]] = {
    "Python's": (0, 4),
    "NumPy's": (np.int32(0), np.int32(4)),
    "of 8 bits": (np.uint8(0), np.uint8(4)),
    "arrays": (lnp.int32(0), lnp.int32(4)),
}


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "float32", "bfloat16"])
def test_sums_of_numbers_keep_the_dtype(bounds: str, dtype: str) -> None:
    start, end = BOUNDS[bounds]
    for total in (
        lx.fori_loop(start, end, lambda i, c: c + i, lnp.zeros((), dtype)),
        lx.jit(lambda a, b: lx.fori_loop(a, b, lambda i, c: c + i, lnp.zeros((), dtype)))(start, end),
    ):
        assert total.dtype == dtype and float(total) == 6


def test_unrolled_loops_do_the_same() -> None:
    total = lax.fori_loop(0, 4, lambda i, c: c + i, lnp.zeros((), "int8"), unroll=True)
    assert total.dtype == np.int8 and int(total) == 6


def test_numbers_are_integers_of_32_bits_by_themselves() -> None:
    assert lx.fori_loop(0, 3, lambda i, c: i, 0).dtype == np.int32
    np.testing.assert_array_equal(
        lx.fori_loop(0, 3, lambda i, c: c.at[i].set(i * 2), lnp.zeros(3, "int32")), [0, 2, 4]  # type: ignore[arg-type]
    )
