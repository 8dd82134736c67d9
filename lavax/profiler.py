"""Counters of lavax's work in this process, and the reports of compiled functions.

`counters()` counts traces, compilations, submissions and bytes moved. `fn.lower(*args).compile()` has `cost()`,
`memory()` and `profile(*args)`: a `Cost`, a `Memory` and a `Profile`, which print as tables. `TraceAnnotation` and
`annotate_function` are JAX's names of `named_scope` and `named_call`.
"""
from lavax.base.counters import snapshot as counters
from lavax.ir.location import named_scope
from lavax.passes.reports import Cost, KernelCost, KernelTime, Memory, Profile, TimedDispatch
from lavax.tracer.transforms.named_call import named_call

TraceAnnotation = named_scope
annotate_function = named_call

__all__ = [
    "Cost",
    "KernelCost",
    "KernelTime",
    "Memory",
    "Profile",
    "TimedDispatch",
    "TraceAnnotation",
    "annotate_function",
    "counters",
]
