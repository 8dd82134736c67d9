"""What is logged of compiles: for which function, why a program had to be made, and how long it took."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lavax.base.counters import snapshot
from lavax.base.logs import COMPILES
from lavax.ir import Graph
from lavax.ir.location import user_location

_function: ContextVar[str | None] = ContextVar("function", default=None)


@contextmanager
def compiled_for(function: str) -> Iterator[None]:
    """A context in which programs are made for the compiled function of that name."""
    token = _function.set(function)
    try:
        yield
    finally:
        _function.reset(token)


def begin_compile(graph: Graph, eager: bool) -> Callable[[], None]:
    """To be called before a program of the graph is made; what it returns, to be called afterwards, logs that."""
    if not COMPILES.is_heard:
        return _say_nothing
    subject, before, start = _subject(graph, eager), snapshot(), time.perf_counter()

    def end() -> None:
        seconds, after = time.perf_counter() - start, snapshot()
        shaders, pipelines, tuned = (after[name] - before[name] for name in ("glsl_compiles", "pipelines", "tunings"))
        COMPILES.say(
            "%s: %s compiled in %.1f ms: %s new, of which %s not in the cache on disk%s",
            subject,
            _counted(len(graph.nodes), "operation"),
            1e3 * seconds,
            _counted(pipelines, "shader"),
            f"{shaders} {'was' if shaders == 1 else 'were'}",
            f"; {_counted(tuned, 'kernel')} tuned" if tuned else "",
        )

    return end


def _say_nothing() -> None:
    """Nobody listens."""


def log_reuse(graph: Graph) -> None:
    """Logs that a compiled function needs no program of its own. Operations outside reuse theirs all the time."""
    if _function.get() is not None and COMPILES.is_heard:
        COMPILES.say("%s: nothing to compile, the program of an equal graph is used", _subject(graph, False))


def _counted(number: int, noun: str) -> str:
    """`1 shader`, `2 shaders`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _subject(graph: Graph, eager: bool) -> str:
    function, location = _function.get(), user_location()
    at = f", called at {location}," if location else ""
    if function is not None:
        return function
    what = graph.outputs[0].op if eager and graph.outputs else "a function"
    return f"{what}{at} outside compile"
