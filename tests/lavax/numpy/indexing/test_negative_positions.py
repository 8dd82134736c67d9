"""`wrap_negative_indices=False`: negative positions are outside the array."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ArrayIndexError

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(1, 13, dtype="f").reshape(3, 4)
PLACES = np.array([-1, 1, 5], "i")
WITH_ONE = {  # what each method makes of 6 (the entry in the second row) and 2
    "set": 2.0,
    "add": 8.0,
    "subtract": 4.0,
    "multiply": 12.0,
    "mul": 12.0,
    "divide": 3.0,
    "power": 36.0,
    "min": 2.0,
    "max": 6.0,
}


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize("traced", [False, True])
def test_reads(dtype: Any, traced: bool) -> None:
    def read(mode: Any, places: Any, **more: Any) -> np.ndarray:
        def body(places: Any) -> Any:
            return lnp.asarray(X).at[places, 1].get(mode=mode, wrap_negative_indices=False, **more)

        return np.asarray(lx.compile(body)(places) if traced else body(places))

    places = PLACES.astype(dtype)
    for mode in ("fill", "drop"):
        np.testing.assert_array_equal(read(mode, places, fill_value=-7.0), [-7, 6, -7])
    np.testing.assert_array_equal(read("fill", places), [np.nan, 6, np.nan])
    np.testing.assert_array_equal(read("clip", places), [2, 6, 10])
    np.testing.assert_array_equal(read(None, lnp.asarray(places)), [2, 6, 10])


@pytest.mark.parametrize("mode", ["drop", "fill", None])
@pytest.mark.parametrize("method", WITH_ONE)
def test_updates_leave_them_out(method: str, mode: Any) -> None:
    expected = X.copy()
    expected[1, 1] = WITH_ONE[method]
    for places in (lnp.asarray(PLACES), *([PLACES] if mode else [])):
        place = lnp.asarray(X).at[places, 1]
        found = getattr(place, method)(2.0, mode=mode, wrap_negative_indices=False)
        np.testing.assert_array_equal(found, expected)


def test_apply() -> None:
    expected = X.copy()
    expected[1, 1] = -6
    place = lnp.asarray(X).at[lnp.asarray(PLACES), 1]
    np.testing.assert_array_equal(place.apply(lnp.negative, mode="drop", wrap_negative_indices=False), expected)


def test_clipped_updates_are_at_the_first() -> None:
    found = lnp.asarray(X).at[np.array([-2])].set(0.0, mode="clip", wrap_negative_indices=False)
    np.testing.assert_array_equal(found, [[0] * 4, *X[1:]])


def test_slices_count_from_the_end_still() -> None:
    np.testing.assert_array_equal(lnp.asarray(X).at[-1:].get(wrap_negative_indices=False), X[-1:])
    np.testing.assert_array_equal(lnp.asarray(X).at[:, -2:].get(wrap_negative_indices=False), X[:, -2:])


def test_known_ones_are_refused_without_a_mode() -> None:
    for change in ("get", "set"):
        values = () if change == "get" else (0.0,)
        with pytest.raises(ArrayIndexError, match="index -2 is outside axis 1"):
            getattr(lnp.asarray(X).at[0, np.array([1, -2])], change)(*values, wrap_negative_indices=False)


def test_gradients_flow_to_what_is_read() -> None:
    weights = lnp.asarray(np.arange(1, 13, dtype="f").reshape(3, 4))

    def loss(x: Any, places: Any) -> Any:
        read = lnp.sin(x).at[places].get(mode="fill", fill_value=0.0, wrap_negative_indices=False)
        return lnp.sum(read * weights)

    found = lx.grad(loss)(lnp.asarray(X), lnp.asarray(PLACES))
    expected = np.zeros_like(X)
    expected[1] = np.cos(X[1]) * np.asarray(weights)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
