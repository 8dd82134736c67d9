"""Computed positions outside an array, read by take and take_along_axis."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")

NAN = float("nan")
OUTSIDE = np.array([5, -1, -4, 1])


@pytest.mark.parametrize("wrap", [lambda f: f, lx.compile])
def test_computed_positions_outside_read_nan(wrap: Any) -> None:
    """As JAX 0.10.2 has it; `x[i]` clamps."""
    x, indices = lnp.arange(3.0), lnp.asarray(OUTSIDE)
    np.testing.assert_array_equal(wrap(lnp.take)(x, indices), [NAN, 2, NAN, 1])
    np.testing.assert_array_equal(wrap(lnp.take_along_axis)(x, indices), [NAN, 2, NAN, 1])
    np.testing.assert_array_equal(wrap(lambda x, i: x[i])(x, indices), [2, 2, 0, 1])
    np.testing.assert_array_equal(wrap(lnp.take)(lnp.arange(3), indices), [-(2**31), 2, -(2**31), 1])
    table = lnp.arange(6.0).reshape(3, 2)
    rows = wrap(lambda x, i: lnp.take(x, i, axis=0))(table, indices.reshape(2, 2))
    np.testing.assert_array_equal(rows, [[[NAN, NAN], [4, 5]], [[NAN, NAN], [2, 3]]])
    columns = wrap(lambda x, i: lnp.take(x, i, axis=1))(table, lnp.asarray([2, 0]))
    np.testing.assert_array_equal(columns, [[NAN, 0], [NAN, 2], [NAN, 4]])


def test_positions_outside_have_no_gradient() -> None:
    found = lx.grad(lambda x: lnp.nansum(lnp.take(x, lnp.asarray(OUTSIDE)) * 2))(lnp.arange(3.0))
    np.testing.assert_array_equal(found, [0, 2, 2])
