"""The line of the user's program that created a value."""
from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound=Exception)
_LINE = "\n  at "  # before the user's line, at the end of a message
_scope: ContextVar[str] = ContextVar("scope", default="")


@cache
def _own_folders() -> tuple[str, ...]:
    """The folders of lavax on disk: side by side in a checkout, inside the package once installed."""
    rooms = Path(__file__).resolve().parent.parent
    folders = [rooms / room for room in ("ir", "tracer", "passes", "backends")]
    folders += [Path(folder).resolve() for folder in sys.modules["lavax"].__path__]
    return tuple(str(folder) + os.sep for folder in folders)


@cache
def is_own(filename: str) -> bool:
    """Whether a file of Python is one of lavax's."""
    return str(Path(filename).resolve()).startswith(_own_folders())


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A context, or a decorator, that names the operations in it: `with lx.named_scope("attention"):`.

    Scopes within scopes are written `block/attention`. They are shown beside the operations in the stages "ir" and
    "optimized", and in reports of cost, profiles, fusion and errors beside the lines of the program. They change
    nothing else. Raises TypeError for a name that is not text.
    """
    if not isinstance(name, str):
        raise user_error(TypeError, f"named_scope: the name must be text, got {name!r:.80}")
    outer = _scope.get()
    token = _scope.set(f"{outer}/{name}" if outer else name)
    try:
        yield
    finally:
        _scope.reset(token)


def user_location() -> str | None:
    """The nearest line outside lavax on the call stack, as "file:line", or "file:line in scope" in a named scope."""
    frame, _ = _frames()
    return None if frame is None else _place(frame)


def _place(frame: FrameType) -> str:
    scope = _scope.get()
    line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return f"{line} in {scope}" if scope else line


def line_and_scope(location: str) -> tuple[str, str]:
    """The two parts of a location; the scope is empty if there is none."""
    found = re.match(r"(.*?:\d+) in (.*)", location)
    return (found[1], found[2]) if found else (location, "")


def user_error(kind: type[_Error], message: str) -> _Error:
    """An error of that class whose message ends with the user's line, exactly once."""
    location = None if _LINE in message else user_location()
    return kind(message if location is None else f"{message}{_LINE}{location}")


def warn_user(category: type[Warning], message: str) -> None:
    """A warning at the nearest line outside lavax."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and is_own(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def without_line(error: Exception) -> str:
    """An error's message without the user's line, to be part of another message."""
    return str(error).split(_LINE, 1)[0]


def for_user(message: str) -> str:
    """An error's message, which names the function that the user called and ends with the user's line."""
    frame, called = _frames()
    name = None if called is None else _public_name(called)
    if name and not re.search(rf"\b{name}\b", message):
        message = f"{name}: {message}"
    return message if frame is None or _LINE in message else f"{message}{_LINE}{_place(frame)}"


def _frames() -> tuple[FrameType | None, FrameType | None]:
    """The nearest frame outside lavax, and the frame of lavax that it called."""
    called: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        called, frame = frame, frame.f_back
    return frame, called


def _public_name(frame: FrameType) -> str | None:
    """The name of the function of a frame, if it is a public function of a module, or an object of lavax that is called
    like one."""
    name, whole = frame.f_code.co_name, frame.f_code.co_qualname
    if name == "__call__":
        called = frame.f_locals.get("self")
        is_own_function = str(getattr(called, "__module__", "")).startswith("lavax.")
        return getattr(called, "__name__", None) if is_own_function else None
    return name if name == whole and not name.startswith(("_", "<")) else None


def named(function: Callable[..., Any], name: str, text: str) -> None:
    """Gives a generated function its public name, which errors show too, and a docstring."""
    assert isinstance(function, FunctionType)
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__doc__ = text
