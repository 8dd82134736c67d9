"""Programs that every `compile` of one function finds again, while what the function rests on stays the same."""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any
from weakref import ref

from lavax.tracer.compiled.closed_over import State, state_of
from lavax.tracer.values.program_cache import ProgramCache

_ATTRIBUTE = "__lavax_programs__"


class _SharedPrograms:
    """An attribute of a function: what the function rested on, and the programs that were made of it then.

    It is kept by the function itself, so that both go at once, also if a program refers to the function.
    """

    __slots__ = ("_owner", "programs", "state")

    def __init__(self, owner: Callable[..., Any] | None = None, state: State | None = None) -> None:
        self._owner = owner and ref(owner)
        self.state = state
        self.programs: ProgramCache[Any] = ProgramCache()

    def belongs_to(self, function: Callable[..., Any]) -> bool:
        """False where the attribute was copied from one function to another, as `functools.wraps` does."""
        return self._owner is not None and self._owner() is function

    def __reduce__(self) -> tuple[Any, ...]:
        return _SharedPrograms, ()  # a function that is pickled by its contents takes no programs with it


def programs_of(function: Callable[..., Any]) -> ProgramCache[Any]:
    """The programs of `function` as it is now, to be looked up and added to.

    Only Python functions keep programs, and only if everything they rest on can be seen; for others they are empty.
    """
    if type(function) is not types.FunctionType:
        return ProgramCache()
    state = state_of(function)
    if state is None:
        return ProgramCache()
    found = vars(function).get(_ATTRIBUTE)
    if not (isinstance(found, _SharedPrograms) and found.belongs_to(function) and found.state == state):
        found = _SharedPrograms(function, state)
        setattr(function, _ATTRIBUTE, found)
    return found.programs
