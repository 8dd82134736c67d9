"""Draws of high precision, and bounds of integers that a dtype does not hold, against JAX's numbers."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import random

KEY = random.key(3)
PROBABILITIES = np.full(9, 1 / 9, np.float32)
LOGITS = np.linspace(-2.0, 2.0, 18, dtype=np.float32).reshape(2, 9)

JAX = pytest.importorskip("jax", reason="draws are compared with JAX's")
DRAWS: dict[str, Any] = {
    "gumbel": lambda random, key: random.gumbel(key, (400,), "float32", mode="high"),
    "gumbel in float16": lambda random, key: random.gumbel(key, (400,), "float16", mode="high"),
    "bernoulli": lambda random, key: random.bernoulli(key, 1e-5, (100_000,), mode="high"),
    "categorical": lambda random, key: random.categorical(key, LOGITS, 1, (50, 2), mode="high"),
    "without replacement": lambda random, key: random.categorical(key, LOGITS, 1, (5, 2), False, mode="high"),
    "choice": lambda random, key: random.choice(key, 9, (4,), False, PROBABILITIES, mode="high"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_high_precision_are_those_of_jax(name: str) -> None:
    found, wanted = DRAWS[name](random, KEY), DRAWS[name](JAX.random, JAX.random.key(3))
    np.testing.assert_allclose(np.asarray(found, np.float32), np.asarray(wanted, np.float32), rtol=1e-6, atol=1e-6)


def test_draws_of_high_precision_see_small_probabilities() -> None:
    """Floats of low precision are multiples of 2⁻²³: an event of 2⁻²⁶ would be as frequent as one of 2⁻²³."""
    count = 1 << 20
    hits = sum(int(lnp.sum(random.bernoulli(key, 2.0**-18, (count,), mode="high"))) for key in random.split(KEY, 16))
    assert abs(hits - 64) < 4 * 8
    assert lnp.isfinite(random.gumbel(KEY, (count,), mode="high")).all()


@pytest.mark.parametrize("draw", [random.gumbel, random.bernoulli])
def test_other_modes_are_refused(draw: Any) -> None:
    with pytest.raises(ValueError, match="mode must be 'low' or 'high', got 'medium'"):
        draw(KEY, mode="medium")


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -300, 300), ("uint8", -5, 300), ("uint8", 0, 256), ("uint8", 250, 260), ("uint8", 5, 1000),
        ("int8", 200, 300), ("int16", -40_000, 40_000), ("int8", 5, 3), ("uint16", np.int32(-7), np.int32(70_000)),
        ("uint8", np.array([0, 250]), np.array([2, 999])),
    ],
)  # fmt: skip
def test_bounds_beyond_few_bits_are_the_nearest(dtype: str, low: Any, high: Any) -> None:
    found = random.randint(KEY, (500, 2), low, high, dtype)
    np.testing.assert_array_equal(found, JAX.random.randint(JAX.random.key(3), (500, 2), low, high, dtype))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        *((0, 5.7), (-1.5, 5.7), (np.float32(0), 9), (0, np.prod(())), (np.zeros(2, "f"), np.array([3.9, 70.2]))),
        *((0, 2.0**31 - 1), (-math.inf, 5), (0, math.nan), (np.array(math.nan, "f"), 7), (5.0, 2.0)),
        *((0, np.float32(2**31 - 128)), (False, 9), (np.bool_(True), 9), (np.array([True, False]), 9)),
    ],
)
def test_floats_are_truncated(dtype: str, low: Any, high: Any) -> None:
    """Bools are numbers, too."""
    found = random.randint(KEY, (500, 2), low, high, dtype)
    np.testing.assert_array_equal(found, JAX.random.randint(JAX.random.key(3), (500, 2), low, high, dtype))
    with pytest.raises(lx.DtypeError, match="minval must be an integer"):
        random.randint(KEY, (2,), 1j, high, dtype)


@pytest.mark.parametrize(("dtype", "least", "most"), [("int32", -(2**31), 2**31 - 1), ("uint32", 0, 2**32 - 1)])
def test_floats_outside_of_a_dtype_are_its_nearest_number(dtype: str, least: int, most: int) -> None:
    wanted = random.randint(KEY, (50,), least, most, dtype)
    for bound in (math.inf, 1e20, 2.0**32, np.float32(2) ** 32, np.float32(1e10), np.array(math.inf, "f")):
        np.testing.assert_array_equal(random.randint(KEY, (50,), -bound, bound, dtype), wanted)
    assert int(random.randint(KEY, (), np.float32(2**31), 2**31 - 1, "int32")) == 2**31 - 1, "nearest, not beyond"
