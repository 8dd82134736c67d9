"""Settings without a hash, such as dicts, as parts of a structure."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np


class Frozen:
    """A copy of data without a hash, which what is done to the original later does not change.

    Two are equal if dicts, lists, sets and NumPy's arrays in them have equal parts of the same classes and dtypes;
    other objects without a hash are compared by ==.
    """

    __slots__ = ("_data", "_key")

    def __init__(self, data: Any) -> None:
        self._data, self._key = _copied(data), _key_of(data)

    def thawed(self) -> Any:
        """The data, in containers of their own."""
        return _copied(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self._data)


class _Compared:
    """An object without a hash: equal if the objects are, all with one hash."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Compared) and bool(self.object == other.object)

    def __hash__(self) -> int:
        return 0


def hashable(data: Any) -> Hashable:
    """The data as they are if they have a hash, Frozen otherwise."""
    try:
        hash(data)
    except TypeError:
        return Frozen(data)
    return data  # type: ignore[no-any-return]


def plain(data: Any) -> Any:
    """What `hashable` was given."""
    return data.thawed() if isinstance(data, Frozen) else data


def _copied(data: Any) -> Any:
    kind = type(data)
    if kind is dict:
        return {name: _copied(part) for name, part in data.items()}
    if kind in (list, tuple):
        return kind(map(_copied, data))
    return data.copy() if kind in (set, np.ndarray) else data


def _key_of(data: Any) -> Hashable:
    kind = type(data)
    if kind is dict:
        return kind, frozenset((name, _key_of(part)) for name, part in data.items())
    if kind in (list, tuple):
        return kind, tuple(map(_key_of, data))
    if kind is set:
        return kind, frozenset(data)
    if kind is np.ndarray and data.dtype != object:
        return kind, data.dtype.str, data.shape, data.tobytes()
    try:
        hash(data)
    except TypeError:
        return _Compared(data)
    return kind, data
