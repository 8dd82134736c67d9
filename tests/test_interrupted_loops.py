"""While a lock is held, no loop of the same function goes back on a condition.

From Python 3.13 on, the instruction that jumps back to a loop's head listens for signals, and where the jump hangs on a
condition, the compiler leaves it out of the table that names handlers of exceptions (CPython's issue 130279). So an
interrupt that is heard there leaves the function with its lock held and its `finally` left out, and the next call waits
for ever. A loop in a function of its own, which is called with the lock held, has no such place: the call is in the
table.
"""
from __future__ import annotations

import ast
import signal
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.test_house import ROOT, SOURCES

_OTHER_FRAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_LOOPS = (ast.For, ast.While)


def _within(statements: Sequence[ast.AST], stop: tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
    """All nodes of the statements, but for what is inside those of the kinds `stop`."""
    left = list(statements)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, stop):
            left.extend(ast.iter_child_nodes(node))


def _goes_back_on_a_condition(node: ast.AST) -> bool:
    if isinstance(node, _COMPREHENSIONS):
        return any(each.ifs for each in node.generators)
    if not isinstance(node, _LOOPS):
        return False
    if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
        return True
    is_last = isinstance(node.body[-1], (ast.If, ast.Match, *_LOOPS))
    return is_last or any(isinstance(each, ast.Continue) for each in _within(node.body, (*_LOOPS, *_OTHER_FRAMES)))


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """What runs while a lock is held, or before a `finally`.

    A lock is a value that was made before. Most other contexts are calls, of generators, which Python ends when they
    are freed.
    """
    for node in ast.walk(tree):
        contexts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
        if isinstance(node, ast.With) and any(isinstance(context, (ast.Name, ast.Attribute)) for context in contexts):
            yield node.body
        if isinstance(node, ast.Try) and node.finalbody:
            yield [*node.body, *node.orelse, *(line for handler in node.handlers for line in handler.body)]


def lines_of_loops(text: str) -> list[int]:
    found = {
        node.lineno
        for block in _blocks(ast.parse(text))
        for node in _within(block, _OTHER_FRAMES)
        if isinstance(node, (*_COMPREHENSIONS, *_LOOPS)) and _goes_back_on_a_condition(node)
    }
    return sorted(found)


def test_no_loop_goes_back_on_a_condition_while_a_lock_is_held() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}" for path in SOURCES for line in lines_of_loops(path.read_text())]
    assert found == [], "give each of these loops a function of its own, and call it"


@pytest.mark.parametrize(
    "loop",
    [
        "x = [y for y in z if y]",
        "for y in z:\n        if y: f(y)",
        "for y in z:\n        if y: continue\n        f(y)",
        "while z: f(z)",
        "while True:\n        f(z)\n        if y: g(z)",
    ],
)
def test_loops_are_refused(loop: str) -> None:
    assert lines_of_loops(f"with lock:\n    {loop}\n") == [2]
    assert lines_of_loops(f"with self.lock:\n    {loop}\n") == [2]
    assert lines_of_loops(f"try:\n    {loop}\nfinally:\n    g()\n") == [2]
    assert lines_of_loops(f"try:\n    f()\nexcept ValueError:\n    {loop}\nfinally:\n    g()\n") == [4]
    assert lines_of_loops(f"with f():\n    {loop}\n") == []
    assert lines_of_loops(f"def g():\n    {loop}\nwith lock:\n    g()\n") == []


@pytest.mark.parametrize(
    "loop", ["for y in z: f(y)", "x = [f(y) for y in z]", "x = any(y for y in z if y)", "z.sort()"]
)
def test_loops_are_let_pass(loop: str) -> None:
    assert lines_of_loops(f"with lock:\n    {loop}\n") == []


class Interrupt(BaseException):
    pass


_lock = threading.Lock()


def _plain(numbers: Sequence[int]) -> None:
    with _lock:
        for number in numbers:
            _ = number


def _called(numbers: Sequence[int]) -> list[int]:
    with _lock:
        return _filtered(numbers)


def _filtered(numbers: Sequence[int]) -> list[int]:
    return [number for number in numbers if number]


@pytest.mark.parametrize("function", [_plain, _called])
def test_what_is_let_pass_gives_its_lock_back(function: Callable[[Sequence[int]], object]) -> None:
    """Signals while the lock is held: on no version of Python is it kept."""

    def interrupt(*_: object) -> None:
        raise Interrupt

    numbers = [0] * 20_000
    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        for _ in range(20):
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.001)
            with pytest.raises(Interrupt):
                _for_ever(function, numbers)
            assert not _lock.locked()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _for_ever(function: Callable[[Sequence[int]], object], numbers: Sequence[int]) -> None:
    while True:
        function(numbers)
