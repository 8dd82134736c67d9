"""The operators and methods of arrays of random keys that differ from those of numbers, by name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.numpy._core.key_movement import moved_index, moves_keys, same_keys
from lavax.numpy.arrays import creation, tiling
from lavax.numpy.elementwise import bitwise, comparison
from lavax.numpy.indexing import taking
from lavax.numpy.indexing.indexed_update import At
from lavax.numpy.indexing.indexing import index
from lavax.numpy.methods.array_methods import PLACES
from lavax.numpy.methods.operators import OPERATORS
from lavax.numpy.reductions import reductions
from lavax.tracer.values.key_array import KeyArray
from lavax.tracer.values.value import Value

_MOVING = ("T", "mT", "flatten", "ravel", "reshape", "squeeze", "swapaxes", "transpose")


class _KeyPlaces:
    """`keys.at`, and `keys.at[key]`."""

    def __init__(self, keys: KeyArray, key: Any = None) -> None:
        self._keys = keys
        self._key = key

    def __getitem__(self, key: Any) -> _KeyPlaces:
        return _KeyPlaces(self._keys, key)

    def set(self, values: Any, **settings: Any) -> Any:
        """With the keys `values` there; settings are those of numbers."""
        return moves_keys(lambda old, new: At(old)[self._key].set(new, **settings))(self._keys, values)

    def get(self, **settings: Any) -> Any:
        """The keys there; settings are those of numbers."""
        return moves_keys(lambda old: At(old)[self._key].get(**settings))(self._keys)


def _equal(self: KeyArray, other: Any) -> Value:
    return same_keys(self, other, comparison.equal, reductions.all)


def _moving(method: Any) -> Any:
    if isinstance(method, property):
        return property(moves_keys(method.fget), doc=method.__doc__)  # type: ignore[type-var]  # it has a getter
    return moves_keys(method)


KEY_METHODS: dict[str, Callable[..., Any] | property] = {
    **PLACES,
    **{name: _moving(OPERATORS[name]) for name in _MOVING},
    "__eq__": _equal,
    "__getitem__": lambda self, key: moved_index(index, self, key),
    "__ne__": lambda self, other: bitwise.bitwise_invert(_equal(self, other)),
    "at": property(_KeyPlaces, doc="Places to update: `keys.at[key].set(others)`."),
    "clone": moves_keys(creation.copy),
    "copy": moves_keys(creation.copy),
    "repeat": moves_keys(tiling.repeat),
    "take": moves_keys(taking.take),
}
