"""The optional check that no key is drawn from twice.

Two keys are the same if they have one memory: the keys in an array of keys are new each time they are taken out, and
are not recognized. Draws in a function that is being traced count until its trace ends, so that a body traced
twice, and two branches, may each draw from one key.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lavax.base import config
from lavax.base.errors import KeyReuseError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_location
from lavax.tracer import Tracer, active_trace
from lavax.tracer.tracing.trace import Trace
from lavax.tracer.values.array import Array
from lavax.tracer.values.key_array import KeyArray


@dataclass(frozen=True, eq=False)
class _Use:
    """A draw from a key."""

    key: Any  # returns the key while it exists: a weak reference, or a function that returns a graph's node
    trace: Trace | None
    function: str
    location: str | None

    @property
    def is_over(self) -> bool:
        return self.key() is None or (self.trace is not None and self.trace.ended)


_uses: dict[int, _Use] = {}  # by the identity of the key, which may be another key's once `is_over`


@contextmanager
def key_reuse() -> Iterator[None]:
    """A context in which a key may be drawn from or split only once; a second time raises KeyReuseError.

    Draws before the context do not count. LAVAX_CHECK_KEY_REUSE=1 does the same for the whole process. `fold_in` may
    take a key any number of times.
    """
    before = dict(_uses)
    _uses.clear()
    try:
        with config.checked_key_reuse():
            yield
    finally:
        _uses.clear()
        _uses.update(before)


def consume(function: str, key: Any) -> None:
    """Records that `function` draws from `key`. Raises KeyReuseError if that was drawn from before."""
    if not config.check_key_reuse():
        return
    for identity in [identity for identity, use in _uses.items() if use.is_over]:
        del _uses[identity]
    if isinstance(key, KeyArray):
        key = key.words
    # An array that is written has another memory: it is another key.
    target: Any = key.node if isinstance(key, Tracer) else (key.memory or key) if isinstance(key, Array) else key
    earlier = _uses.get(id(target))
    location = user_location()
    if earlier is not None:
        raise KeyReuseError(
            f"{function}{_at(location)} draws from a key that {earlier.function} has drawn from"
            f"{_at(earlier.location)}: the numbers would not be independent. Make a key for each with "
            "lavax.random.split(key), or lavax.random.fold_in(key, number)"
        )
    if isinstance(key, Tracer):
        _uses[id(target)] = _Use(lambda: target, active_trace(), function, location)
    elif isinstance(key, (Array, np.ndarray)):
        _uses[id(target)] = _Use(weakref.ref(target), active_trace(), function, location)


def _at(location: str | None) -> str:
    return f" at {location}" if location else ""
