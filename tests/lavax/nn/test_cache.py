"""The key-value cache: appended rows, attention over them, and what an update writes."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.nn import dot_product_attention
from lavax.nn.modules.cache import KeyValueCache

BATCH, LENGTH, HEADS, HEAD = 3, 64, 2, 8
LENGTHS = np.array([5, 0, 30], np.int32)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def filled() -> KeyValueCache:
    return KeyValueCache(draw(BATCH, LENGTH, HEADS, HEAD), draw(BATCH, LENGTH, HEADS, HEAD, seed=1))


@pytest.mark.parametrize("count", [1, 7, 40])
def test_each_row_gets_its_tokens_at_its_own_length(count: int) -> None:
    cache = filled()
    keys, values = draw(BATCH, count, HEADS, HEAD, seed=2), draw(BATCH, count, HEADS, HEAD, seed=3)
    found = cache.append(keys, values, LENGTHS)
    for held, new, got in ((cache.keys, keys, found.keys), (cache.values, values, found.values)):
        wanted = np.array(held)
        for row, start in enumerate(LENGTHS):
            room = min(count, LENGTH - start)
            wanted[row, start : start + room] = new[row, :room]
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("length", [LENGTH, 256])
def test_an_update_of_a_donated_cache_writes_the_new_rows_only(dtype: str, length: int) -> None:
    update = lx.compile(lambda cache, new, lengths: cache.append(new, new, lengths), donate_argnums=0)
    cache = KeyValueCache.zeros(BATCH, length, HEADS, HEAD, dtype)
    new = lx.device_put(draw(BATCH, 1, HEADS, HEAD)).astype(dtype)
    compiled = update.lower(cache, new, LENGTHS).compile()
    assert compiled.cost().bytes_written == 2 * new.nbytes
    assert compiled.memory().temporaries == 0
    kept, again = np.asarray(cache.append(new, new, LENGTHS).keys), update(cache, new, LENGTHS)
    assert np.array_equal(again.keys, kept)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("window", [None, 4])
def test_attention_sees_what_is_filled(window: int | None) -> None:
    cache, lengths = filled(), np.array([5, 9, 30], np.int32)
    query = draw(BATCH, 2, 4, HEAD, seed=4)
    found = np.asarray(cache.attend(query, lengths, window=window, scale=0.5))
    for row, length in enumerate(lengths):
        for step in range(2):
            end = length + step + 1
            start = 0 if window is None else max(end - window, 0)
            keys, values = (np.asarray(x)[row : row + 1, start:end] for x in (cache.keys, cache.values))
            wanted = dot_product_attention(query[row : row + 1, step : step + 1], keys, values, scale=0.5)
            np.testing.assert_allclose(found[row, step], np.asarray(wanted)[0, 0], rtol=2e-5, atol=1e-6)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("shape", [(BATCH, 1, HEADS, 4), (2, 1, HEADS, HEAD), (BATCH, HEADS, HEAD)])
def test_other_heads_are_refused(shape: tuple[int, ...]) -> None:
    new: Any = np.zeros(shape, np.float32)
    with pytest.raises(lx.ShapeError, match=r"KeyValueCache.append: keys \[3, T, 2, 8\], got"):
        filled().append(new, new, LENGTHS)
