"""Functions whose operations carry a name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.ir.location import named_scope
from lavax.tracer.calls.signature import require_function
from lavax.tracer.calls.wrapping import wraps


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """The same function, whose operations are in the `named_scope` of that name, by default the function's own."""
    require_function(fun, "named_call takes a function")
    scope = name if name is not None else getattr(fun, "__name__", type(fun).__name__)

    @wraps(fun)
    def called(*args: Any, **kwargs: Any) -> Any:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return called
