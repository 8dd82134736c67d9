"""Pipelines that are created while further shaders are written."""
from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan import backend
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.ahead import Ahead
from lavax.backends.vulkan.compile.pipeline_workers import PipelineWorkers
from lavax.backends.vulkan.compile.pipelines import Pipeline, Pipelines
from lavax.backends.vulkan.device.device import get_device
from lavax.backends.vulkan.emit import program as emission
from lavax.backends.vulkan.memory.memory import MemoryPool
from lavax.backends.vulkan.plan.plan import Shader
from lavax.testing.caches import fresh_caches
from tests.closeness import close


def thread_of(number: int) -> int:
    return threading.get_ident()


def test_all_but_the_last_are_made_in_other_threads() -> None:
    with Ahead(thread_of, lambda number: False) as ahead:
        for number in (0, 1, 0, 2):
            ahead.want(number)
        first, second, last = (ahead.begun(number) for number in range(3))
        assert first is not None and second is not None and last is None
        assert threading.get_ident() not in (first.result(), second.result())


def test_the_last_is_begun_if_much_else_is_to_be_done_first() -> None:
    with Ahead(thread_of, lambda number: False) as ahead:
        ahead.want(0)
        ahead.begin_last()
        ahead.begin_last()
        first = ahead.begun(0)
        assert first is not None and first.result() != threading.get_ident()
        ahead.want(1)
        assert ahead.begun(1) is None, "it waits again"


def test_one_starts_no_thread_and_what_is_there_is_not_made() -> None:
    before = threading.active_count()
    with Ahead(thread_of, lambda number: number > 0) as ahead:
        for number in (1, 2, 0, 3):
            ahead.want(number)
        assert threading.active_count() == before
        assert [ahead.begun(number) for number in range(4)] == [None] * 4


def test_threads_take_turns_more_often_only_meanwhile() -> None:
    before = sys.getswitchinterval()
    with Ahead(thread_of, lambda number: False) as outer:
        outer.want(0)
        assert sys.getswitchinterval() == before
        outer.want(1)
        with pytest.raises(KeyError), Ahead(thread_of, lambda number: False) as inner:
            inner.want(0)
            inner.want(1)
            raise KeyError
        assert sys.getswitchinterval() < before
    assert sys.getswitchinterval() == before


def test_what_cannot_be_made_raises_where_it_is_needed() -> None:
    def refuse(number: int) -> int:
        raise ZeroDivisionError(number)

    with Ahead(refuse, lambda number: False) as ahead:
        ahead.want(0)
        ahead.want(1)
        begun = ahead.begun(0)
        assert begun is not None
        with pytest.raises(ZeroDivisionError):
            begun.result()


@pytest.mark.parametrize("by", ["the extension's threads", "threads of Python's"])
def test_a_program_has_its_shaders_compiled_while_it_is_written(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shader but the last is begun before the last one is written, and none is created twice."""
    created: list[Shader] = []
    ahead: list[Shader] = []
    first_is_begun = threading.Event()
    create, take, launched = Pipelines._create, Pipelines._pipeline, emission._Emission._launch

    def creating(self: Pipelines, shader: Shader) -> Pipeline:
        if threading.current_thread() is not threading.main_thread():
            ahead.append(shader)
        first_is_begun.set()
        return create(self, shader)

    def taking(self: Pipelines, shader: Shader, handle: Any) -> Pipeline:
        created.append(shader)
        return take(self, shader, handle)

    if by == "threads of Python's":
        monkeypatch.setattr(pipelines, "available", lambda: False)
    elif not pipelines.available():
        pytest.skip("the extension is not here, or was built by an earlier version")
    else:
        begin = PipelineWorkers.begin

        def beginning(self: PipelineWorkers[Pipeline], shader: Shader, /) -> Any:
            ahead.append(shader)
            begun = begin(self, shader)
            assert begun is not None
            first_is_begun.set()
            return begun

        monkeypatch.setattr(PipelineWorkers, "begin", beginning)
    written: list[bool] = []

    def launching(self: Any, *given: Any) -> Any:
        launch = launched(self, *given)
        if len(written) == 2:  # two shaders are written, and so the first one is begun
            assert first_is_begun.wait(60)
        written.append(True)
        return launch

    monkeypatch.setattr(Pipelines, "_create", creating)
    monkeypatch.setattr(Pipelines, "_pipeline", taking)
    monkeypatch.setattr(emission._Emission, "_launch", launching)
    x = np.linspace(-1, 1, 77 * 7, dtype=np.float32).reshape(77, 7)
    exact = x.astype(np.float64)
    wanted = np.cumsum(np.sum(np.sin(exact) * 3, axis=1)) - np.sum(exact @ exact.T, axis=0)
    with fresh_caches(tmp_path):
        found = lx.compile(lambda x: lnp.cumsum(lnp.sum(lnp.sin(x) * 3, axis=1)) - lnp.sum(x @ x.T, axis=0))(x)
        close(np.asarray(found) / 1000, wanted / 1000)  # sums of up to 1,000
    assert len(written) > 2 and len(created) == len(set(created)) > 2
    assert len(ahead) == len(set(ahead)) == len(created) - 1


def test_large_temporaries_are_allocated_while_shaders_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another thread, and once: the program takes the memory that is there."""
    cuts: list[tuple[int, int]] = []
    cut = MemoryPool._cut

    def cutting(self: MemoryPool, returned: list[Any], nbytes: int) -> Any:
        cuts.append((nbytes, threading.get_ident()))
        return cut(self, returned, nbytes)

    def found(x: Any, scale: float) -> tuple[int, set[int]]:
        get_device().arrays.release_unused()  # or a piece of other tests may be as large, and is taken as it is
        cuts.clear()
        function = lx.compile(lambda x: lnp.cumsum(lnp.sum(lnp.cos(x) * scale, axis=1)))
        close(np.asarray(function(x))[-1], np.sum(np.cos(x, dtype=np.float64)) * scale)
        arena = function.lower(x).memory().temporaries
        return arena, {thread for nbytes, thread in cuts if nbytes == arena}

    monkeypatch.setattr(MemoryPool, "_cut", cutting)
    here = threading.get_ident()
    arena, threads = found(np.ones((1237, 3), np.float32), 3.0)
    assert arena and threads == {here}, "small ones when they are needed"
    monkeypatch.setattr(backend, "_LARGE_ARENA_BYTES", 1)
    arena, threads = found(np.ones((2473, 3), np.float32), 5.0)
    assert arena and threads and here not in threads
