"""Elements of 8 and 16 bits that a CPU driver reads as texels of words, wherever four neighbours begin."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from tests.backends.vulkan.emit.emission import dispatch_of

rng = np.random.default_rng(9)
LENGTH = 4800

# What a kernel reads: four aligned neighbours, four that begin anywhere, and single elements.
READS: dict[str, Callable[[Any], Any]] = {
    "aligned": lambda x: x,
    "one behind": lambda x: x[1 : LENGTH - 3],
    "two behind": lambda x: x[2 : LENGTH - 2],
    "three behind": lambda x: x[3 : LENGTH - 1],
    "every third": lambda x: x[::3],
    "backwards": lambda x: x[::-1],
    "of odd length": lambda x: x[: LENGTH - 1],
    "columns": lambda x: x.reshape(60, 80).T,
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("read", READS)
def test_elements_are_read_and_written_as_they_are(read: str, dtype: str) -> None:
    x = rng.integers(0, 256, LENGTH).astype(np.int32)
    x = x - 128 if dtype == "int8" else (x - 128) * 256 + 3 if dtype == "int16" else x
    x = x * 257 if dtype == "uint16" else x  # beyond the signed numbers
    array, reading = lnp.asarray(x).astype(dtype), READS[read]
    assert lnp.dtype(array.dtype).itemsize < 4
    moved = lx.compile(lambda x: reading(x) + 1)(array)  # also written narrow, where the largest wraps around
    limits = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16}
    expected = (reading(x) + 1).astype(limits.get(dtype, np.int32))
    if dtype == "bfloat16":  # whole numbers of up to eight bits
        expected = np.where(expected > 256, 256, expected)
    np.testing.assert_array_equal(np.asarray(moved.astype("int32")), expected.astype(np.int32))
    total = lx.compile(lambda x: reading(x).astype("float32").sum())(array)
    assert float(total) == pytest.approx(float(reading(x).sum()), rel=1e-6)


def test_four_neighbours_are_one_texel() -> None:
    """Of two words where they are halves, of one where they are bytes; only stores loop over the lanes."""
    for dtype, read, write in (("float16", "couples0", "pairs1"), ("int8", "elements0", "singles1")):
        text = dispatch_of(lx.trace(lambda x: x + x)(lx.ShapeDtype((LENGTH,), dtype)), CPU_DRIVER).shader.source
        assert f"texelFetch({read}" in text and f"{write}.data[" in text and "U32" not in text.split("void main")[1]
