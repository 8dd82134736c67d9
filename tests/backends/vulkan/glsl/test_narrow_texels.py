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


@pytest.mark.parametrize(
    "dtype, read, write", [("float16", "couples0", "stores1"), ("int8", "elements0", "singles1")]
)
def test_four_neighbours_are_one_texel(dtype: str, read: str, write: str) -> None:
    """Of two words where they are halves, of one where they are bytes; only stores loop over the lanes. Eight words are
    stored at once where they divide the result, or else four; of halves also where some are left behind these."""
    fours = LENGTH + 16 // lnp.dtype(dtype).itemsize
    for length, stored in ((LENGTH, "eights1"), (fours, "stores1"), (LENGTH + 4, write)):
        text = dispatch_of(lx.trace(lambda x: x + x)(lx.ShapeDtype((length,), dtype)), CPU_DRIVER).shader.source
        main = text.split("void main")[1]
        assert f"texelFetch({read}" in main and main.count(f"{stored}.data[") == 1
        assert "U32" not in main


def test_several_results_are_stored_in_words() -> None:
    """Of one width in words at once; of several, and of those in another order, as vectors."""
    x = rng.integers(-60, 60, (60, 80)).astype(np.int8)
    found = lx.compile(lambda x: (x + x, -x, (x > 3) * x))(x)
    for result, wanted in zip(found, (x + x, -x, (x > 3) * x), strict=True):
        np.testing.assert_array_equal(np.asarray(result), wanted.astype(np.int8))
    doubled, wide = lx.compile(lambda x: (x * 2, x.astype("int16") * 300))(x)
    np.testing.assert_array_equal(np.asarray(doubled), (x * 2).astype(np.int8))
    np.testing.assert_array_equal(np.asarray(wide), x.astype(np.int16) * 300)
