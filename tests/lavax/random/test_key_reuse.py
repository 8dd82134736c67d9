"""Keys that are drawn from twice, while that is checked."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import random
from lavax.base.errors import KeyReuseError


def test_a_key_is_drawn_from_once() -> None:
    key = random.key(0)
    random.normal(key)
    random.normal(key)  # nobody asked
    with lx.debug.key_reuse():
        random.normal(key)
        with pytest.raises(KeyReuseError, match=r"uniform at .*reuse.py:\d+ .* normal has drawn") as caught:
            random.uniform(key)
        assert "split" in str(caught.value)
    random.uniform(key)


@pytest.mark.parametrize(
    "draw",
    [
        random.split,
        random.bits,
        lambda key: random.permutation(key, 5),
        lambda key: random.gamma(key, 2.0),
        lambda key: random.poisson(key, 20.0),
        lambda key: random.randint(key, (3,), 0, 9),
        lambda key: random.categorical(key, np.zeros(3, "f")),
        lambda key: random.choice(key, 5, (2,), replace=False),
    ],
)
def test_no_function_is_taken_for_two(draw: Any) -> None:
    with lx.debug.key_reuse():
        key = random.key(1)
        draw(key)
        draw(random.fold_in(key, 1))
        random.fold_in(key, 2)
        with pytest.raises(KeyReuseError):
            draw(key)


def test_within_functions() -> None:
    def twice(key: Any) -> Any:
        return random.normal(key) + random.uniform(key)

    def once(key: Any) -> Any:
        first, second = random.split(key)
        return random.normal(first) + random.uniform(second)

    keys = random.split(random.key(2), 3)
    with lx.debug.key_reuse():
        for transform in (lx.compile, lx.vmap):
            argument = random.key(3) if transform is lx.compile else keys
            transform(once)(argument)
            with pytest.raises(KeyReuseError):
                transform(twice)(argument)


def test_bodies_and_branches_may_draw_from_one_key() -> None:
    with lx.debug.key_reuse():
        key = random.key(4)

        @lx.compile
        def f(x: Any, key: Any) -> Any:
            x = lx.cond(x > 0, lambda x: x + random.normal(key), lambda x: x - random.uniform(key), x)
            return lx.fori_loop(0, 3, lambda i, c: c * 1.5 + random.normal(random.fold_in(key, i)), x)

        f(1.0, key)
        lx.scan(lambda c, _: (c * 2 + random.normal(key), None), 1, None, length=2)  # traced twice


def test_what_is_gone_is_forgotten() -> None:
    with lx.debug.key_reuse():
        for seed in range(50):
            random.normal(random.key(seed))
            gc.collect(0)


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_CHECK_KEY_REUSE", "1")
    key = np.array([0, 7], np.uint32)
    random.normal(key)
    with pytest.raises(KeyReuseError):
        random.normal(key)
