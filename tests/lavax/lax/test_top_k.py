"""The greatest elements of rows in JAX's order, short rows and long ones."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("length", [9, 4000])
def test_zero_is_greater_than_minus_zero_in_top_k(dtype: str, length: int) -> None:
    """In the order of positions among themselves, as in JAX; `numpy.top_k` takes both as equal."""
    x = np.zeros((2, length), "f")
    x[0, [0, 2, 3, 5, 6]] = [-0.0, -0.0, 1, np.nan, -1]
    x[1] = -0.0
    x[1, [2, 4]] = 0.0
    given = lnp.asarray(x, dtype)
    values, places = lax.top_k(given, 6)
    assert values.dtype == given.dtype and places.tolist()[1] == [2, 4, 0, 1, 3, 5]
    assert places.tolist()[0] == [5, 3, 1, 4, 7, 8]
    assert np.signbit(np.asarray(values[1], "f")).tolist() == [False, False, True, True, True, True]
    assert lnp.top_k(given, 6).indices.tolist()[1] == [0, 1, 2, 3, 4, 5]
    assert lax.top_k(given, 6, axis=1)[1].tolist() == places.tolist()
    gradient = lx.grad(lambda x: lax.top_k(x, 3)[0].sum().astype("float32"))(lnp.asarray(x[1:], dtype))
    assert np.flatnonzero(np.asarray(gradient, "f")).tolist() == [0, 2, 4]
