"""The tracer: Python functions -> graphs."""
from lavax.tracer.array import Array
from lavax.tracer.bind import bind, with_weak
from lavax.tracer.convert import constant, dtype_of, lift
from lavax.tracer.trace import Trace, active_trace
from lavax.tracer.tracer import Tracer
from lavax.tracer.value import Value, install

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
