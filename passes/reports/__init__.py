"""The cost, memory and run time of a program, as objects that print as tables."""
from lavax.passes.reports.cost import Cost, KernelCost
from lavax.passes.reports.counting import cost_of_program
from lavax.passes.reports.memory import Memory
from lavax.passes.reports.profile import KernelTime, Profile, TimedDispatch, profile_of

__all__ = ["Cost", "KernelCost", "KernelTime", "Memory", "Profile", "TimedDispatch", "cost_of_program", "profile_of"]
