"""What lavax has done so far in this process, and the reports that a compiled function gives of itself.

`counters()` counts traces, compilations, submissions and bytes moved. `fn.lower(*args).compile()` has `cost()`,
`memory()` and `profile(*args)`: a `Cost`, a `Memory` and a `Profile`, which print as tables.
"""
from lavax.base.counters import snapshot as counters
from lavax.passes.reports import Cost, KernelCost, KernelTime, Memory, Profile, TimedDispatch

__all__ = ["Cost", "KernelCost", "KernelTime", "Memory", "Profile", "TimedDispatch", "counters"]
