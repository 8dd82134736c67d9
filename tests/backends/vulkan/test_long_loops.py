"""Rows and sums so long that one invocation must not go through them alone: some drivers end long loops silently."""
from __future__ import annotations

import numpy as np

import lavax as lx
import lavax.numpy as lnp

RANDOM = np.random.default_rng(0)


def test_a_long_column_is_summed_whole() -> None:
    x = RANDOM.integers(-3, 4, (70_001, 260)).astype(np.float32)
    np.testing.assert_array_equal(lx.compile(lambda x: lnp.sum(x, axis=0))(x), x.sum(0, dtype=np.float64))


def test_a_long_contraction_is_summed_whole() -> None:
    left = RANDOM.integers(-1, 2, (3, 280_003)).astype(np.float32)
    right = RANDOM.integers(-1, 2, (280_003, 5)).astype(np.float32)
    expected = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_array_equal(lx.compile(lambda a, b: a @ b)(left, right), expected)


def test_a_long_row_has_its_first_extremum() -> None:
    x = RANDOM.normal(size=600_001).astype(np.float32)
    assert int(lx.compile(lambda x: lnp.argmax(x))(x)) == x.argmax()
    x[400_000] = np.nan
    assert int(lx.compile(lambda x: lnp.argmin(x))(x)) == 400_000
