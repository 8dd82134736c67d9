"""A fresh `compile` of one function traces again only if what the function rests on has changed."""
from __future__ import annotations

import functools
import gc
import pickle
import random
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.counters import snapshot

X = np.array([1.0, 2.0, 4.0], "f")

scale = 2.0
settings = types.ModuleType("settings_of_a_user")


class Model:
    """An object of a user."""

    power = 1

    def __init__(self) -> None:
        self.weights = lnp.array([1.0, 10.0, 100.0])
        self.layers: list[dict[str, float]] = [{"gain": 1.0}]

    def __call__(self, x: Any) -> Any:
        return self.helped(x) * self.layers[0]["gain"] + scale

    def helped(self, x: Any) -> Any:
        return self.weights * x**self.power


def scaled(x: Any) -> Any:
    return x * scale


def calls_scaled(x: Any) -> Any:
    return scaled(x) + 1


def reads_settings(x: Any) -> Any:
    return x * settings.gain


def traces(function: Callable[..., Any], *args: Any, **options: Any) -> int:
    """The number of traces that a fresh `compile` needs."""
    before = snapshot()["traces"]
    lx.compile(function, **options)(*args or (X,))
    return snapshot()["traces"] - before


def test_the_same_function_is_traced_once() -> None:
    model = Model()

    def loss(x: Any) -> Any:
        return lnp.sum(model(x))

    assert [traces(loss) for _ in range(3)] == [1, 0, 0]
    assert traces(loss, np.ones((2, 3), "f")) == 1  # another shape
    assert traces(loss, X, donate_argnums=0) == 1


def change_global(model: Model) -> None:
    globals()["scale"] = scale + 1


def change_weights(model: Model) -> None:
    model.weights[1] = model.weights[1] + 1


def replace_weights(model: Model) -> None:
    model.weights = lnp.array([3.0, 2.0, 1.0])


def change_inner_dict(model: Model) -> None:
    model.layers[0]["gain"] += 1


def change_class(model: Model) -> None:
    Model.power += 1


@pytest.mark.parametrize(
    "change", [change_global, change_weights, replace_weights, change_inner_dict, change_class]
)
def test_what_changed_is_seen(change: Callable[[Model], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "power", 1)
    monkeypatch.setitem(globals(), "scale", 2.0)
    model = Model()

    def run(x: Any) -> Any:
        return model(x)

    lx.compile(run)(X)
    change(model)
    np.testing.assert_array_equal(np.asarray(lx.compile(run)(X)), np.asarray(run(X)))
    assert traces(run) == 0


def test_methods_that_are_replaced_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()

    def run(x: Any) -> Any:
        return model(x)

    lx.compile(run)(X)
    monkeypatch.setattr(Model, "helped", lambda self, x: x)
    np.testing.assert_array_equal(np.asarray(lx.compile(run)(X)), X + scale)


def test_functions_that_are_called_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    lx.compile(calls_scaled)(X)
    assert traces(calls_scaled) == 0
    monkeypatch.setitem(globals(), "scale", 5.0)
    np.testing.assert_array_equal(np.asarray(lx.compile(calls_scaled)(X)), X * 5 + 1)


def test_settings_in_the_users_modules_are_seen() -> None:
    settings.gain = 1.0  # type: ignore[attr-defined]
    lx.compile(reads_settings)(X)
    settings.gain = 3.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.asarray(lx.compile(reads_settings)(X)), X * 3)


@pytest.mark.parametrize("first, second", [(0.0, -0.0), (1, True), (1, 1.0), (1.0, float("nan"))])
def test_numbers_that_compare_equal_are_told_apart(first: Any, second: Any) -> None:
    value = first

    def run(x: Any) -> Any:
        return lnp.divide(1.0, value) * x if value == 0 else lnp.array(value)

    lx.compile(run)(X)
    value = second
    again = lx.compile(run)(X)
    assert again.dtype == run(X).dtype
    np.testing.assert_array_equal(np.asarray(again), np.asarray(run(X)))


def test_numpy_arrays_count_by_their_numbers() -> None:
    weights = np.ones(3, "f")

    def run(x: Any) -> Any:
        return x * weights

    lx.compile(run)(X)
    assert traces(run) == 0
    weights[0] = 7
    assert np.asarray(lx.compile(run)(X)).tolist() == [7, 2, 4]


def test_effects_on_python_are_seen() -> None:
    seen: list[int] = []

    def run(x: Any) -> Any:
        seen.append(1)
        return x

    assert [traces(run) for _ in range(2)] == [1, 1]


def test_what_cannot_be_seen_is_traced_again() -> None:
    numbers = (n for n in range(10))
    generator = np.random.default_rng(0)
    draw = random.Random(0)

    def of_iterator(x: Any) -> Any:
        return x * next(numbers)

    def of_numpy(x: Any) -> Any:
        return x * generator.random()

    def of_random(x: Any) -> Any:
        return x * draw.random()

    for function in (of_iterator, of_numpy, of_random):
        first, second = (np.asarray(lx.compile(function)(X)) for _ in range(2))
        assert not np.array_equal(first, second)


def test_a_wrapper_does_not_take_the_programs_of_what_it_wraps() -> None:
    lx.compile(scaled)(X)

    @functools.wraps(scaled)
    def wrapper(x: Any) -> Any:
        return scaled(x) * 10

    np.testing.assert_array_equal(np.asarray(lx.compile(wrapper)(X)), X * scale * 10)


def test_settings_of_lavax_count() -> None:
    def run(x: Any) -> Any:
        return x + lnp.asarray(np.arange(3.0))

    step = lx.compile(run)
    assert step(X).dtype == np.float32
    with lx.enable_x64():
        assert step(X).dtype == np.float64
        assert lx.compile(run)(X).dtype == np.float64
    assert step(X).dtype == np.float32
    lx.config.update("jax_debug_nans", True)
    with pytest.raises(lx.NaNError):
        lx.compile(run)(X * np.nan)


def test_keys_that_are_drawn_from_twice_are_seen_at_each_trace() -> None:
    def run(key: Any) -> Any:
        return lx.random.normal(key) + lx.random.normal(key)

    step = lx.compile(run)
    step(lx.random.key(0))
    with lx.debug.key_reuse():
        for again in (step, lx.compile(run)):
            with pytest.raises(lx.KeyReuseError):
                again(lx.random.key(0))


def test_a_function_and_its_programs_go_at_once() -> None:
    def made() -> weakref.ref[Any]:
        def run(x: Any) -> Any:
            return run.gain * x  # type: ignore[attr-defined]

        run.gain = 2.0  # type: ignore[attr-defined]
        lx.compile(run)(X)
        return weakref.ref(run)

    kept = made()
    gc.collect()
    assert kept() is None


def test_a_compiled_function_is_pickled_without_its_programs() -> None:
    step = lx.compile(scaled)
    step(X)
    assert pickle.loads(pickle.dumps(step.__getstate__()))["_entries"] == {}
