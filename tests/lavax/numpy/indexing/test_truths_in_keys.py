"""Single truth values in keys: masks without axes, which are broadcast with other positions as in NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ArrayIndexError, ConcretizationError, ShapeError

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.arange(12, dtype="f").reshape(3, 4)
ROWS = np.array([0, 2])
KEYS: dict[str, Any] = {
    "true": True,
    "false": False,
    "after a slice": (slice(None), True),
    "false after a slice": (slice(None), False),
    "behind all": (Ellipsis, True),
    "before an axis": (None, True),
    "after an axis": (True, None),
    "two": (True, True),
    "two apart": (True, slice(None), True),
    "true and false": (True, False),
    "before an int": (True, 1),
    "after an int": (1, True),
    "after an int and a slice": (1, slice(None), True),
    "false and an int": (False, 1),
    "before positions": (True, ROWS),
    "after positions": (ROWS, True),
    "apart from positions": (ROWS, slice(None), True),
    "between positions": (ROWS, True, ROWS),
    "before a mask": (True, np.array([True, False, True])),
    "of NumPy": (slice(1, None), np.bool_(True)),
    "an array": (slice(1, None), np.array(False)),
}


def _ours(part: Any) -> Any:
    return lnp.asarray(part) if isinstance(part, (bool, np.ndarray)) else part


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_reads_are_those_of_numpy(key: Any) -> None:
    for given in (key, tuple(map(_ours, key)) if isinstance(key, tuple) else lnp.asarray(key)):
        for read in (lambda x, given=given: x[given], lambda x, given=given: x.at[given].get()):
            np.testing.assert_array_equal(read(lnp.asarray(X)), X[key], strict=True)
    np.testing.assert_array_equal(lx.compile(lambda x: x[key])(X), X[key], strict=True)


@pytest.mark.parametrize("mode", [None, "clip", "drop", "fill"])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_updates_are_those_of_numpy(key: Any, mode: Any) -> None:
    updates = np.arange(X[key].size, dtype="f").reshape(X[key].shape) + 20
    put, added = X.copy(), X.copy()
    put[key] = updates
    np.add.at(added, key, updates)
    np.testing.assert_array_equal(lnp.asarray(X).at[key].set(updates, mode=mode), put, strict=True)
    np.testing.assert_array_equal(lnp.asarray(X).at[key].add(updates, mode=mode), added, strict=True)


def test_gradients_flow_through_them() -> None:
    weights = lnp.arange(8.0).reshape(1, 2, 4)

    def loss(x: lx.Array) -> lx.Array:
        return lnp.sum(lnp.sin(lnp.cos(x)[True, :2] * weights)) + lnp.sum(lnp.exp(x)[:, False])

    def same(x: lx.Array) -> lx.Array:
        return lnp.sum(lnp.sin(lnp.cos(x)[None, :2] * weights))

    x = lnp.asarray(X) / 7
    np.testing.assert_array_equal(lx.grad(loss)(x), lx.grad(same)(x))


def test_what_is_no_key() -> None:
    with pytest.raises(ShapeError, match="broadcast"):
        lnp.asarray(X)[ROWS, False]
    with pytest.raises(ArrayIndexError, match="too many indices"):
        lnp.asarray(X)[0, 0, True, 0]
    for key in (lambda b: b, lambda b: (slice(None), b)):
        with pytest.raises(ConcretizationError):
            lx.compile(lambda x, b, key=key: x[key(b)])(X, lnp.asarray(True))
