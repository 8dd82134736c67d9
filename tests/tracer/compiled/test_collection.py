"""The collector of reference cycles rests while a program is made, and only then."""
from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import lavax as lx
from lavax.tracer.compiled.collection import without_collection
from lavax.tracer.compiled.executable import Executable

X = np.ones(3, np.float32)


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_rests_while_a_function_is_traced() -> None:
    seen: list[bool] = []

    def traced(x: lx.Array) -> lx.Array:
        seen.append(gc.isenabled())
        return x + 1

    lx.compile(traced).lower(X)
    assert seen == [False] and gc.isenabled()


def test_it_rests_until_the_device_has_something_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    call = Executable.__call__

    def running(executable: Executable, arrays: Sequence[lx.Array]) -> list[lx.Array]:
        seen.append(gc.isenabled())
        return call(executable, arrays)

    monkeypatch.setattr(Executable, "__call__", running)
    function = lx.compile(lambda x, by: x * by)
    assert (np.asarray(function(X, 3.0)) == 3).all() and gc.isenabled()
    assert (np.asarray(function(X, 4.0)) == 4).all()
    assert seen == [False, True], "later calls leave it alone"


def test_it_goes_on_after_an_error() -> None:
    def failing(x: lx.Array) -> lx.Array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lx.compile(failing).lower(X)
    assert gc.isenabled()


def test_it_stays_off_if_it_was() -> None:
    gc.disable()
    lx.compile(lambda x: x + 1).lower(X)
    assert not gc.isenabled()


def test_the_last_of_several_threads_lets_it_go_on() -> None:
    begun, end = threading.Event(), threading.Event()

    def longer() -> None:
        with without_collection:
            begun.set()
            assert end.wait(60)

    thread = threading.Thread(target=longer)
    with without_collection:
        thread.start()
        assert begun.wait(60)
    assert not gc.isenabled()
    end.set()
    thread.join()
    assert gc.isenabled()
