"""The number of an iteration yields to the dtype of what it is combined with."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.base.errors import ControlFlowTypeError, DtypeError

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


def test_a_length_may_be_a_number_of_an_array() -> None:
    lengths: list[Any] = [3, np.int64(3), np.array(3), lnp.asarray(3)]
    for length in lengths:
        carry, stacked = lx.lax.scan(lambda c, _: (c + 1, c), 0, None, length=length)
        assert int(carry) == 3 and np.asarray(stacked).tolist() == [0, 1, 2]
    with pytest.raises(lx.ConcretizationError, match="behind a traced value"):
        lx.jit(lambda n: lx.lax.scan(lambda c, _: (c, c), 0, None, length=n))(3)


def test_numbers_of_steps_that_loops_do_not_take() -> None:
    wrong: list[Any] = [2.0, np.float32(2)]
    for floats in wrong:
        with pytest.raises(TypeError, match="scan: length must be an integer"):
            lx.lax.scan(lambda c, _: (c, c), 0, None, length=floats)
    with pytest.raises(ValueError, match="scan: length must not be negative, got -1"):
        lx.lax.scan(lambda c, _: (c, c), 0, None, length=-1)
    with pytest.raises(ValueError, match="scan: unroll must not be negative, got -1"):
        lx.lax.scan(lambda c, x: (c, x), 0, np.arange(3), unroll=-1)
    with pytest.raises(ValueError, match="map: batch_size must not be negative, got -2"):
        lx.lax.map(lambda x: x, np.arange(3), batch_size=-2)
    assert np.asarray(lx.lax.map(lambda x: x + 1, np.arange(3), batch_size=0)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("unroll", [None, True])
def test_a_body_gives_what_it_takes_with_and_without_a_loop(unroll: bool | None) -> None:
    x = np.ones(2, "f")
    with pytest.raises(ControlFlowTypeError, match=r"fori_loop: the body gives c64\[2\]( at 1)?, but its argument has"):
        lax.fori_loop(0, 3, lambda i, c: c * 1j, x, unroll=unroll)
    with pytest.raises(ControlFlowTypeError, match="the body gives the structure"):
        lax.fori_loop(0, 3, lambda i, c: (c, c), x, unroll=unroll)
    total = lax.fori_loop(0, 3, lambda i, c: c + x[0] * 1j, 0.0, unroll=unroll)
    assert total.dtype == np.complex64 and complex(total) == 3j
    with pytest.raises(DtypeError, match=r"(lower|upper) must be an integer"):
        lax.fori_loop(0, 3.5, lambda i, c: c, x, unroll=unroll)
