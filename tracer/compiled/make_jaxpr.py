"""`make_jaxpr`: the graph of a function, for given arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.tracer.calls.wrapping import wraps
from lavax.tracer.compiled.compile import compile
from lavax.tracer.compiled.jaxpr import jaxpr_of
from lavax.tracer.pytrees.pytree import unflatten


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function of the same arguments that returns the graph of `fun` as a Jaxpr, which prints as text.

    `static_argnums` are passed to `fun` as they are; with `return_shape` the result is a pair, of the Jaxpr and
    what `eval_shape` returns. The text is that of lavax's graphs: JAX's own notation is another one. Raises ValueError
    for an `axis_env`: use `vmap(axis_name=)`.
    """
    if axis_env is not None:
        raise ValueError("make_jaxpr: there is no axis_env; name an axis by vmap(axis_name=...)")
    compiled = compile(fun, static_argnums=static_argnums)

    @wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        traced = compiled.lower(*args, **kwargs).traced
        jaxpr = jaxpr_of(traced)
        return (jaxpr, unflatten(traced.structure, jaxpr.out_avals)) if return_shape else jaxpr

    return made
