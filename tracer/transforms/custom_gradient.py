"""Functions that return their own gradient rule."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.pytrees.partial import Partial
from lavax.tracer.transforms.closure_convert import closure_convert
from lavax.tracer.transforms.custom_rules import custom_vjp


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradient is that which `fun` returns beside its result.

    `function(*args)` returns a pair: the result, and a function from its cotangent to those of the arguments, as a
    tuple (of one argument, it may be that cotangent itself). The rule may use values of `fun`. Forward mode works
    if it is linear, as with custom_vjp, whose errors this raises.
    """

    @custom_vjp
    @wraps(fun)
    def value(*args: Any) -> Any:
        return fun(*args)[0]

    def forward(*args: Any) -> tuple[Any, Partial]:
        result, rule = fun(*args)
        converted, values = closure_convert(rule, result)
        return result, Partial(converted, *values)

    def backward(rule: Partial, cotangent: Any) -> tuple[Any, ...]:
        found = rule.func(cotangent, *rule.args)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    value.defvjp(forward, backward)
    return value
