"""What a transformed function takes over from the user's: its name, documentation and attributes."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_CLASSES = {"__name__": str, "__qualname__": str, "__type_params__": tuple}


def wraps(function: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """`functools.wraps`, for whatever can be called: a name that is no text, as some objects have, is left out."""
    taken = [
        name
        for name in functools.WRAPPER_ASSIGNMENTS
        if isinstance(getattr(function, name, None), _CLASSES.get(name, object))
    ]

    def decorate(wrapper: _Function) -> _Function:
        functools.update_wrapper(wrapper, function, assigned=taken)
        return wrapper

    return decorate
