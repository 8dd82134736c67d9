"""Random orders, and draws from given entries."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import random
from lavax.base.errors import ShapeError

TABLE = np.arange(12, dtype=np.int32).reshape(3, 4)
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
LOGITS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]], np.float32)
KNOWN: list[tuple[Callable[[], Any], Any]] = [
    (lambda: random.permutation(random.key(0), 8), [0, 1, 5, 6, 4, 3, 2, 7]),
    (
        lambda: random.permutation(random.key(3), 20),
        [0, 14, 5, 17, 18, 6, 7, 10, 4, 2, 15, 1, 19, 3, 9, 11, 13, 12, 16, 8],
    ),
    (
        lambda: random.permutation(random.key(3), 3000)[:10],
        [861, 411, 2542, 2416, 949, 1036, 329, 2075, 3, 1771],
    ),
    (lambda: random.permutation(random.key(3), TABLE, axis=1), [[0, 2, 1, 3], [4, 6, 5, 7], [8, 10, 9, 11]]),
    (
        lambda: random.permutation(random.key(3), TABLE, axis=1, independent=True),
        [[0, 2, 1, 3], [5, 6, 7, 4], [10, 9, 11, 8]],
    ),
    (lambda: random.choice(random.key(0), 10, (5,)), [9, 0, 2, 3, 1]),
    (lambda: random.choice(random.key(0), 10, (5,), replace=False), [0, 1, 8, 5, 6]),
    (lambda: random.choice(random.key(0), 4, (6,), p=WEIGHTS), [0, 0, 3, 2, 2, 3]),
    (lambda: random.choice(random.key(0), 4, (3,), replace=False, p=WEIGHTS), [1, 0, 3]),
    (lambda: random.categorical(random.key(1), LOGITS, shape=(2, 2), replace=False), [[2, 0], [1, 1]]),
]


@pytest.mark.parametrize(("draw", "expected"), KNOWN)
def test_known_draws(draw: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(draw()), expected)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000])
def test_a_permutation_has_every_entry_once(count: int) -> None:
    found = np.asarray(random.permutation(random.key(count), count))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(np.sort(found), np.arange(count))


def test_every_entry_comes_to_every_place() -> None:
    times = 3000
    keys = np.asarray(random.split(random.PRNGKey(6), times))
    draw = lx.compile(lambda key: random.permutation(key, 4))
    places = np.stack([np.asarray(draw(key)) for key in keys])
    counted = np.stack([np.bincount(places[:, place], minlength=4) for place in range(4)]) / times
    assert (np.abs(counted - 0.25) < 5 * math.sqrt(3 / 16 / times)).all()


def test_rows_stay_together_and_lines_do_not() -> None:
    rows = np.asarray(random.permutation(random.key(1), np.arange(600).reshape(200, 3)))
    assert (np.diff(rows, axis=1) == 1).all() and sorted(rows[:, 0]) == list(range(0, 600, 3))
    lines = np.asarray(random.permutation(random.key(1), np.arange(600).reshape(3, 200), axis=-1, independent=True))
    np.testing.assert_array_equal(np.sort(lines, axis=1), np.arange(600).reshape(3, 200))
    assert not (lines[0] + 200 == lines[1]).all()


def test_choice_takes_along_an_axis() -> None:
    key = random.key(2)
    places = np.asarray(random.choice(key, 4, (2, 3)))
    found = np.asarray(random.choice(key, TABLE, (2, 3), axis=1))
    np.testing.assert_array_equal(found, TABLE[:, places])
    assert len(set(np.asarray(random.choice(key, np.arange(50) * 3, (50,), replace=False)).tolist())) == 50


def test_choice_goes_by_the_probabilities() -> None:
    draws = 20_000
    found = np.asarray(random.choice(random.key(4), 4, (draws,), p=WEIGHTS))
    counted = np.bincount(found, minlength=4) / draws
    assert (np.abs(counted - WEIGHTS) < 5 * np.sqrt(WEIGHTS * (1 - WEIGHTS) / draws)).all()


def test_inside_and_outside_a_compiled_function() -> None:
    def draw(key: Any) -> Any:
        first, second = random.split(key)
        return random.permutation(first, 33), random.choice(second, 7, (5,), p=np.full(7, 1 / 7, np.float32))

    for inside, outside in zip(lx.compile(draw)(random.key(5)), draw(random.key(5)), strict=True):
        np.testing.assert_array_equal(np.asarray(inside), np.asarray(outside))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: random.permutation(random.key(0), -1), "permutation: -1 is not a number of entries"),
    (lambda: random.permutation(random.key(0), TABLE, axis=2), "permutation: axis 2 is not an axis of i32[3,4]"),
    (lambda: random.choice(random.key(0), 0, (2,)), "choice: there is nothing to draw (2,) from"),
    (lambda: random.choice(random.key(0), 3, (2, 2), replace=False), "choice: 4 draws without replacement from 3"),
    (lambda: random.choice(random.key(0), 3, (2,), p=WEIGHTS), "choice: p must have shape (3,)"),
]


@pytest.mark.parametrize(("draw", "message"), REFUSED)
def test_what_is_refused(draw: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError) as found:
        draw()
    assert message in str(found.value)
    assert "test_ordering.py:" in str(found.value)
