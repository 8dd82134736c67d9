"""The classes of compiled functions on their way, as in jax.stages: wrapped, lowered, compiled."""
from lavax.tracer.compiled.compile import CompiledFunction
from lavax.tracer.compiled.lowered import Compiled, Lowered

__all__ = ["Compiled", "Lowered", "Wrapped"]

Wrapped = CompiledFunction
