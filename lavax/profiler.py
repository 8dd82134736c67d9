"""Counters of lavax's work in this process, and the reports of compiled functions.

`counters()` counts traces, compilations, submissions and bytes moved. `fn.lower(*args).compile()` has `cost()`,
`memory()` and `profile(*args)`: a `Cost`, a `Memory` and a `Profile`, which print as tables.
"""
from lavax.base.counters import snapshot as counters
from lavax.passes.reports import Cost, KernelCost, KernelTime, Memory, Profile, TimedDispatch

__all__ = ["Cost", "KernelCost", "KernelTime", "Memory", "Profile", "TimedDispatch", "counters"]
