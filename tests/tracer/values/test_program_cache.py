"""Compiled functions keep the programs that were used last, up to a number and a size."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base import counters
from lavax.tracer.values.backend import runtime
from lavax.tracer.values.program_cache import CachedProgram, ProgramCache, now


@pytest.fixture
def keeps_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_KEPT_PROGRAMS", "8")


def _traces(function: object, *lengths: int) -> int:
    before = counters.snapshot()["traces"]
    for length in lengths:
        assert function(np.ones(length, np.float32)).shape == (length,)  # type: ignore[operator]
    return counters.snapshot()["traces"] - before


@pytest.mark.usefixtures("keeps_eight")
def test_a_function_keeps_the_programs_used_last() -> None:
    double = lx.compile(lambda x: x * 2.0)
    assert _traces(double, 1) == 1
    for length in range(2, 40):
        assert _traces(double, length, 1) == 1, "that of length 1 is used all the time"
    assert len(double._entries) == 8
    assert _traces(double, *range(33, 40), 1) == 0
    assert _traces(double, 32) == 1


@pytest.mark.usefixtures("keeps_eight")
def test_so_it_does_for_calls_with_arrays() -> None:
    double = lx.compile(lambda x: x * 2.0)
    arrays = {length: lnp.asarray(np.ones(length, np.float32)) for length in range(1, 40)}
    for array in arrays.values():
        for _ in range(3):
            double(array)
            double(arrays[1])
    assert len(double._of_arrays) == len(double._entries) == 8
    before = counters.snapshot()["traces"]
    double(arrays[1])
    assert counters.snapshot()["traces"] == before


def test_the_few_used_last_are_kept_whatever_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAVAX_KEPT_PROGRAM_BYTES", "1000")
    cache: ProgramCache[CachedProgram] = ProgramCache()
    for number in range(8):
        cache.keep(number, CachedProgram(100))
    assert len(cache) == 8
    cache[0].used = now()
    cache.keep("large", CachedProgram(500))
    assert sorted(map(str, cache)) == ["0", "4", "5", "6", "7", "large"]
    for number in range(10):
        cache.keep(number, CachedProgram(5000))
    assert list(cache) == [6, 7, 8, 9]


def test_clear_caches_drops_all_programs() -> None:
    double = lx.compile(lambda x: x * 2.0)
    assert _traces(double, 1, 2, 2) == 2
    held = lnp.arange(3) + 1
    lx.clear_caches()
    assert not double._entries and not double._of_arrays
    assert not runtime().operations and not runtime().scalars and not runtime().programs.values()
    assert _traces(double, 1, 2) == 2
    assert (np.asarray(held + 1) == [2, 3, 4]).all(), "arrays stay"


def test_clear_cache_drops_those_of_one_function() -> None:
    double, triple = lx.compile(lambda x: x * 2.0), lx.compile(lambda x: x * 3.0)
    assert _traces(double, 1) + _traces(triple, 1) == 2
    double.clear_cache()
    assert _traces(double, 1) == 1 and _traces(triple, 1) == 0


def test_a_copy_of_a_cache_is_empty() -> None:
    cache: ProgramCache[CachedProgram] = ProgramCache()
    cache.keep("a", CachedProgram(1))
    assert not copy.deepcopy(cache) and not pickle.loads(pickle.dumps(cache))
    assert len(cache) == 1


@pytest.mark.parametrize(("variable", "value"), [("LAVAX_KEPT_PROGRAMS", "many"), ("LAVAX_KEPT_PROGRAM_BYTES", "-1")])
def test_wrong_settings_are_named(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=f"{variable}={value}: set it to a number of at least 0, or to inf"):
        lx.compile(lambda x: x + 1)(1.0)
