"""Arrays of 8 and 16 bits are read as they are: nothing stores them in 32 bits first."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.device.device import get_device

SIDE = 512
SMALL = SIDE * SIDE // 8  # bytes: far less than one more copy
NARROW = ["int8", "uint8", "int16", "uint16", "float16", "bfloat16"]

# Each with the bytes of its result, for an array of SIDE by SIDE elements of so many bytes.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[int], int]]] = {
    "sum": (lnp.sum, lambda size: 0),
    "sum in float32": (lambda x: lnp.sum(x, dtype="float32"), lambda size: 0),
    "column sums": (lambda x: lnp.sum(x, axis=0), lambda size: 4 * SIDE),
    "row products": (lambda x: lnp.prod(x, axis=1), lambda size: 4 * SIDE),
    "mean": (lnp.mean, lambda size: 0),
    "standard deviation": (lnp.std, lambda size: 0),
    "maximum": (lnp.max, lambda size: 0),
    "position of the maximum": (lnp.argmax, lambda size: 0),
    "any": (lnp.any, lambda size: 0),
    "all in columns": (lambda x: lnp.all(x, axis=0), lambda size: 4 * SIDE),
    "number not zero": (lnp.count_nonzero, lambda size: 0),
    "copy": (lnp.copy, lambda size: size * SIDE * SIDE),
    "transpose": (lnp.transpose, lambda size: size * SIDE * SIDE),
    "product with a vector": (lambda x: x @ x[0], lambda size: 4 * SIDE),
    "doubled": (lambda x: x * 2, lambda size: size * SIDE * SIDE),
    "with floats": (lambda x: x * lnp.linspace(0, 1, SIDE, dtype="float32"), lambda size: 4 * SIDE * SIDE),
    "sine": (lnp.sin, lambda size: 4 * SIDE * SIDE),
}


def _array(dtype: str) -> Any:
    numbers = np.random.default_rng(0).integers(1, 4, (SIDE, SIDE))
    return lx.block_until_ready(lnp.array(numbers, dtype=dtype))


def _peak(function: Callable[[Any], Any], x: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes that a call takes at its peak, its result included, beyond what was there."""
    pool = get_device().arrays
    lx.block_until_ready(function(x))  # constants of the program
    pool._collect_returned()
    before = pool.use().in_use
    monkeypatch.setattr(pool, "_peak_bytes", 0)
    lx.block_until_ready(function(x))
    return pool.use().peak - before


@pytest.mark.parametrize("shape", [(SIDE,), (SIDE, 1), ()])
def test_an_array_that_is_repeated_along_a_large_one_is_not_stored_repeated(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (lnp.asarray(np.random.default_rng(0).normal(size=of), "float32") for of in ((SIDE, SIDE), shape))
    np.testing.assert_array_equal(np.asarray(x - y), np.asarray(x) - np.asarray(y))
    assert _peak(lambda x: x - y, x, monkeypatch) <= 4 * SIDE * SIDE + SMALL


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["int8", "float16"])
def test_memory_of_one_call(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, of_result = FUNCTIONS[name]
    x = _array(dtype)
    assert x.buffer, "it is on the device"
    repeats = 4 * SIDE * SIDE if name == "with floats" else 0  # the line of floats is broadcast first
    assert _peak(function, x, monkeypatch) <= of_result(x.dtype.itemsize) + repeats + SMALL


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", NARROW)
def test_temporaries_of_one_program(name: str, dtype: str) -> None:
    function, _ = FUNCTIONS[name]
    memory = lx.compile(function).lower(lx.ShapeDtype((SIDE, SIDE), dtype)).memory()
    assert memory.temporaries <= SMALL


@pytest.mark.parametrize("dtype", NARROW)
def test_the_numbers_are_right(dtype: str) -> None:
    x = _array(dtype)
    numbers = np.asarray(x).astype(np.float64)
    assert float(lnp.sum(x, dtype="float32")) == numbers.sum()
    assert int(lnp.count_nonzero(x)) == SIDE * SIDE
    assert int(lnp.argmax(x)) == numbers.argmax()
    np.testing.assert_array_equal(np.asarray(lnp.cumsum(x, axis=1, dtype="int32")), numbers.cumsum(axis=1))
    np.testing.assert_array_equal(np.asarray(x + lnp.float32(0.5)), numbers + 0.5)
    result = x * lnp.full((SIDE,), 2, "int32")
    np.testing.assert_array_equal(np.asarray(result).astype(np.float64), 2 * numbers)
