"""Rows and sums so long that one invocation must not go through them alone: some drivers end long loops silently."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.errors import DeviceError

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


def test_a_scatter_into_a_line_too_long_for_the_driver_is_refused_or_right() -> None:
    positions = RANDOM.integers(0, 200_000, 50)
    expected = np.zeros(200_000, np.float32)
    np.add.at(expected, positions, np.float32(1))
    array = lnp.zeros(200_000, lnp.float32)
    if lx.default_device().kind != "cpu":
        np.testing.assert_array_equal(array.at[positions].add(1.0), expected)
        return
    with pytest.raises(DeviceError, match="lines of 200000 places are too long"):
        array.at[positions].add(1.0)
