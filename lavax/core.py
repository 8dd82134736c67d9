"""What a program may ask of a value, as in jax.core: `isinstance(x, lavax.core.Tracer)` is True while x is traced."""
from lavax.tracer.tracing.trace import ensure_compile_time_eval
from lavax.tracer.tracing.tracer import Tracer

__all__ = ["Tracer", "ensure_compile_time_eval"]
