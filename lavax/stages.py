"""The classes of compiled functions on their way, as in jax.stages: wrapped, traced, lowered, compiled."""
from lavax.tracer.compiled.compile import CompiledFunction
from lavax.tracer.compiled.lowered import Compiled, Lowered
from lavax.tracer.compiled.traced_function import TracedFunction

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]

Traced = TracedFunction
Wrapped = CompiledFunction
