"""Several threads that call a function first trace it once, and never wait for each other in a circle."""
from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.tracer.compiled.turns import Turns, _Turn
from lavax.tracer.tracing.trace import _active

SECONDS = 30.0
ONES = np.ones(3, "f")


def together(work: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results, or exceptions, of calls that begin at one moment, in a thread each."""
    gate, found = threading.Barrier(len(work)), [None] * len(work)

    def run(place: int) -> None:
        gate.wait()
        try:
            found[place] = work[place]()
        except BaseException as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not sys.modules[lx.compile.__module__]._turns._turns, "no turn is left behind"
    return found


def test_eight_threads_trace_once() -> None:
    traces = []

    @lx.compile
    def f(x: Any) -> Any:
        traces.append(threading.get_ident())
        time.sleep(0.1)
        return lnp.sum(x * 2)

    assert list(map(float, together([lambda: f(ONES)] * 8))) == [6.0] * 8
    assert len(traces) == 1


def _long(x: Any) -> Any:
    for _ in range(300):
        x = x + 1
    return x


def test_wrappers_of_one_function_are_traced_once(counted: Callable[[str], int]) -> None:
    found = together([lambda: lx.compile(_long)(ONES)] * 8)
    assert [np.asarray(each).tolist() for each in found] == [[301.0] * 3] * 8
    assert counted("traces") == 1


def test_other_shapes_are_not_held_up() -> None:
    entered, may_end = threading.Event(), threading.Event()

    @lx.compile
    def f(x: Any) -> Any:
        if x.shape == (3,):
            entered.set()
            assert may_end.wait(SECONDS)
        return x + 1

    def other() -> Any:
        assert entered.wait(SECONDS)
        found = f(np.ones(4, "f"))
        may_end.set()
        return found

    first, second = together([lambda: f(ONES), other])
    assert (first.shape, second.shape) == ((3,), (4,))


def test_if_tracing_fails_the_next_one_tries() -> None:
    tries = []

    @lx.compile
    def f(x: Any) -> Any:
        tries.append(1)
        time.sleep(0.05)
        if len(tries) < 4:
            raise RuntimeError(f"try {len(tries)}")
        return x + 1

    found = together([lambda: f(ONES)] * 8)
    assert sorted(str(each) for each in found if isinstance(each, RuntimeError)) == ["try 1", "try 2", "try 3"]
    assert sum(not isinstance(each, RuntimeError) for each in found) == 5
    assert len(tries) == 4


def test_functions_that_call_themselves() -> None:
    @lx.compile(static_argnums=1)
    def f(x: Any, depth: int) -> Any:
        return x if depth == 0 else f(x + 1, depth - 1)

    assert np.asarray(together([lambda: f(ONES, 3)] * 4)[0]).tolist() == [4.0] * 3


def test_two_functions_that_call_each_other_from_two_threads() -> None:
    """Without a trace around them: each is traced while the other waits for it."""
    inside = threading.Barrier(2)
    depths = {"f": 0, "g": 0}

    def body(name: str, other: Callable[[], Any]) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            depths[name] += 1
            if depths[name] == 1:
                inside.wait(SECONDS)
                other()
            return x + 1

        return function

    def call(function: Any) -> Any:
        token = _active.set(None)  # as in a function on the host that is called while another is traced
        try:
            return np.asarray(function(ONES)).tolist()
        finally:
            _active.reset(token)

    f = lx.compile(body("f", lambda: call(g)))
    g = lx.compile(body("g", lambda: call(f)))
    start = time.perf_counter()
    found = together([lambda: np.asarray(f(ONES)).tolist(), lambda: np.asarray(g(ONES)).tolist()])
    assert found == [[2.0] * 3] * 2
    assert time.perf_counter() - start < 10


def test_a_maker_that_vanished_is_replaced() -> None:
    """An exception at any line may end it: here its turn stays behind, as if the line that ends it had not run."""
    turns: Turns[int] = Turns()
    made: dict[str, int] = {}

    def vanish() -> None:
        turns._turns["key"] = _Turn(threading.get_ident())

    thread = threading.Thread(target=vanish)
    thread.start()
    thread.join()
    assert turns.made("key", lambda: made.get("key"), lambda: made.setdefault("key", 7)) == 7
    assert not turns._turns


def test_an_exception_at_any_line_leaves_no_turn_behind() -> None:
    """A tracing function raises at each line of `made` in turn; then the function is called as if nothing had been."""

    class Stop(BaseException):
        pass

    code = Turns.made.__code__
    for line in sorted({line for _, _, line in code.co_lines() if line}):
        turns: Turns[int] = Turns()
        made: dict[str, int] = {}

        def tracing(frame: Any, event: str, argument: Any, line: int = line) -> Any:
            if frame.f_code is code and frame.f_lineno == line and event == "line":
                raise Stop
            return tracing

        def attempt(turns: Turns[int] = turns, made: dict[str, int] = made) -> int:
            return turns.made("key", lambda: made.get("key"), lambda: made.setdefault("key", 7))

        before = sys.gettrace()
        sys.settrace(tracing)
        try:
            attempt()
        except Stop:
            pass
        finally:
            sys.settrace(before)
        found: list[int] = []
        thread = threading.Thread(target=lambda found=found, attempt=attempt: found.append(attempt()), daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert found == [7], f"after line {line - code.co_firstlineno} of made"
