"""Positions in dtypes that do not hold the extent that they are counted in, known while tracing and computed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

LINE = np.arange(300, dtype=np.float32)
PLACES = {
    "uint8": np.array([0, 5, 255, 200], np.uint8),
    "int8": np.array([0, 100, -3, -128], np.int8),
    "uint64": np.array([0, 5, 299, 200], np.uint64),
}


def written(places: np.ndarray, value: float) -> np.ndarray:
    expected = LINE.copy()
    expected[places.astype(np.int64)] = value
    return expected


def outside_negative(places: np.ndarray) -> np.ndarray:
    wide = places.astype(np.int64)
    return np.where(wide < 0, np.nan, LINE[wide])


Case = tuple[Callable[[Any, Any], Any], Callable[[np.ndarray], Any]]


def _wide(places: np.ndarray) -> np.ndarray:
    return LINE[places.astype(np.int64)]


CASES: dict[str, Case] = {
    "index": (lambda x, i: x[i], _wide),
    "get": (lambda x, i: x.at[i].get(mode="clip"), _wide),
    "get fill": (lambda x, i: x.at[i].get(mode="fill"), _wide),
    "get not from the end": (
        lambda x, i: x.at[i].get(mode="fill", wrap_negative_indices=False),
        outside_negative,
    ),
    "set": (lambda x, i: x.at[i].set(7), lambda i: written(i, 7)),
    "set clip": (lambda x, i: x.at[i].set(7, mode="clip"), lambda i: written(i, 7)),
    "take": (lnp.take, _wide),
    "take clip": (
        lambda x, i: lnp.take(x, i, mode="clip"),
        lambda i: np.take(LINE, i.astype(np.int64), mode="clip"),
    ),
    "take wrap": (lambda x, i: lnp.take(x, i, mode="wrap"), _wide),
    "take_along_axis": (lambda x, i: lnp.take_along_axis(x, i, 0), _wide),
    "put": (lambda x, i: lnp.put(x, i, 7, inplace=False), lambda i: written(i, 7)),
    "insert": (lambda x, i: lnp.insert(x, i, 7), lambda i: np.insert(LINE, i.astype(np.int64), 7)),
    "one_hot": (
        lambda x, i: lx.nn.one_hot(i, 300),
        lambda i: i.astype(np.int64)[:, None] == np.arange(300),
    ),
}


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "computed"])
@pytest.mark.parametrize("dtype", list(PLACES))
@pytest.mark.parametrize("name", list(CASES))
def test_narrow_positions(name: str, dtype: str, is_known: bool) -> None:
    ours, theirs = CASES[name]
    places = PLACES[dtype]
    expected = theirs(places)
    eager = ours(lnp.asarray(LINE), places if is_known else lnp.asarray(places))
    np.testing.assert_array_equal(np.asarray(eager), expected)
    if is_known:
        found = lx.compile(lambda x: ours(x, places))(LINE)
    else:
        found = lx.compile(ours)(LINE, places.astype(np.uint32) if dtype == "uint64" else places)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_great_numbers_are_outside_and_not_negative() -> None:
    great = np.array([0, 2**32 - 1, 2**31, 3], np.uint32)
    assert np.asarray(lnp.bincount(great, length=4)).tolist() == [1, 0, 0, 1]
    found = np.asarray(lnp.take(LINE, lnp.asarray(great), mode="wrap"))
    np.testing.assert_array_equal(found, LINE[great.astype(np.int64) % 300])
    with pytest.raises(IndexError, match="is outside axis 0"):
        lnp.asarray(LINE)[np.array([2**64 - 1], np.uint64)]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "uint32"])
@pytest.mark.parametrize("wrap", [lx.compile, lambda f: f])
def test_flat_positions_in_all_integers(dtype: str, wrap: Any) -> None:
    """From 2^31 on uint32 is no negative int32, and narrow ones reach into wider extents."""
    numbers = np.array([np.iinfo(dtype).max, 3, 100], dtype)
    known = numbers.astype(np.int64)
    for mode in ("wrap", "clip"):
        found = wrap(lambda x, mode=mode: lnp.ravel_multi_index((x, x), (300, 400), mode=mode))(numbers)
        np.testing.assert_array_equal(np.asarray(found), np.ravel_multi_index((known, known), (300, 400), mode=mode))
    found = wrap(lambda x: lnp.unravel_index(x, (5, 60)))(lx.device_put(numbers))
    for one, other in zip(found, np.unravel_index(np.minimum(known, 299), (5, 60)), strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)
