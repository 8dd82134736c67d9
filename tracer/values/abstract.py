"""The type and weakness of a value."""
from __future__ import annotations

from lavax.ir import TensorType


class Abstract:
    """A type, and whether it is weak (made from Python scalars alone, so that it yields in promotion).

    There is one object per pair, made by `abstract`: comparison and hash are by identity, because these objects are
    part of the key under which a compiled function is looked up on every call.
    """

    __slots__ = ("type", "weak")

    def __init__(self, type: TensorType, weak: bool) -> None:
        self.type = type
        self.weak = weak

    def __repr__(self) -> str:
        return f"{self.type} (weak)" if self.weak else str(self.type)


_interned: dict[tuple[tuple[int, ...], str, bool], Abstract] = {}


def abstract(type: TensorType, weak: bool = False) -> Abstract:
    """The one Abstract of this type and weakness."""
    key = (type.shape, type.dtype.name, weak)
    found = _interned.get(key)
    if found is None:
        found = _interned.setdefault(key, Abstract(type, weak))
    return found
