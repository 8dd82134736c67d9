"""Functions whose operations carry a name."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lavax.ir.location import named_scope
from lavax.tracer.calls.signature import require_function


def named_call(function: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """The same function, whose operations are in the `named_scope` of that name, by default the function's own."""
    require_function(function, "named_call takes a function")
    scope = name if name is not None else getattr(function, "__name__", type(function).__name__)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with named_scope(scope):
            return function(*args, **kwargs)

    return called
