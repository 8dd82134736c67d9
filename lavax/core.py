"""What a program may ask of a value, as in jax.core: `isinstance(x, lavax.core.Tracer)` is True while x is traced.

Also what runs the graphs that `make_jaxpr` returns.
"""
from lavax.tracer.compiled.jaxpr import eval_jaxpr, jaxpr_as_fun
from lavax.tracer.tracing.trace import ensure_compile_time_eval
from lavax.tracer.tracing.tracer import Tracer

__all__ = ["Tracer", "ensure_compile_time_eval", "eval_jaxpr", "jaxpr_as_fun"]
