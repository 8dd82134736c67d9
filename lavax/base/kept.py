"""Properties that are computed once, of objects of which a program takes a hundred thousand."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Kept = TypeVar("_Kept")
# Of frozen instances, too. To ask for an instance's `__dict__` makes one, from which attributes are read more slowly.
_assign = object.__setattr__


class kept(Generic[_Kept]):  # noqa: N801  # used as a decorator
    """A property that is computed once. functools.cached_property takes a lock at that before Python 3.12, which
    costs more than most of these do."""

    def __init__(self, compute: Callable[[Any], _Kept]) -> None:
        self._compute = compute
        self._name = compute.__name__

    def __get__(self, instance: Any, owner: type) -> _Kept:
        value = self._compute(instance)
        _assign(instance, self._name, value)
        return value
