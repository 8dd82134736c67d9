"""Finding a value by its name in an optimizer's state."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_ABSENT = object()


def get(state: Any, key: str, default: Any = None) -> Any:
    """The value called `key` (a field of a named tuple, or a key of a dict) anywhere in `state`, or else `default`.

    Raises KeyError if several parts of the state have that name.
    """
    found = list(get_all(state, key))
    if len(found) > 1:
        raise KeyError(f"get: {len(found)} parts of the state are called {key!r}; take the one you mean by its path")
    return found[0] if found else default


def get_all(state: Any, key: str) -> Iterator[Any]:
    """Every value called `key` in `state`, outermost first; parts of a value that was found are not searched."""
    for name, child in _children(state):
        if name == key:
            yield child
        else:
            yield from get_all(child, key)


def set(state: Any, /, **values: Any) -> Any:
    """`state` with every value of these names replaced, as in `set(state, learning_rate=lnp.float32(0.1))`.

    Raises KeyError for a name that the state does not have.
    """
    for name in values:
        if next(get_all(state, name), _ABSENT) is _ABSENT:
            raise KeyError(f"set: no part of the state is called {name!r}")
    return _replaced(state, values)


def _children(state: Any) -> list[tuple[str | None, Any]]:
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return list(zip(state._fields, state, strict=True))
    if isinstance(state, dict):
        return list(state.items())
    return [(None, child) for child in state] if isinstance(state, (tuple, list)) else []


def _replaced(state: Any, values: dict[str, Any]) -> Any:
    children = _children(state)
    if not children:
        return state
    new = [values[name] if name in values else _replaced(child, values) for name, child in children]
    rebuild: Callable[[list[Any]], Any] = type(state)
    if isinstance(state, dict):
        return type(state)(zip(state, new, strict=True))
    return type(state)(*new) if hasattr(state, "_fields") else rebuild(new)
