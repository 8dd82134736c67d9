"""The tracer: Python functions -> graphs."""
from lavax.tracer.tracing.bind import bind, with_weak
from lavax.tracer.tracing.convert import constant, dtype_of, lift
from lavax.tracer.tracing.trace import Trace, active_trace
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value, install

__all__ = [
    "Array",
    "Trace",
    "Tracer",
    "Value",
    "active_trace",
    "bind",
    "constant",
    "dtype_of",
    "install",
    "lift",
    "with_weak",
]
