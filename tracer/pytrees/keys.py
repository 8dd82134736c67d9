"""Keys: the names of a container's children; the keys from a tree's top to a leaf are the path of that leaf."""
from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class DictKey:
    """The key of a dict's value."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """The position in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """The name of a field: of a named tuple, a dataclass, a Module."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """The number of a child of a class that gives its children no keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


# What a key is called, by its class; keys of other classes are called as `str` says.
_NAMES: dict[type, str] = {DictKey: "key", SequenceKey: "idx", GetAttrKey: "name", FlattenedIndexKey: "key"}


def name_of(key: Any) -> str:
    """The key as text without brackets and dots: `weight`, `0`."""
    attribute = _NAMES.get(type(key))
    return str(key) if attribute is None else str(getattr(key, attribute))


def is_known(key: Any) -> bool:
    """Whether the key is of one of the classes above."""
    return type(key) in _NAMES


class KeyPath(tuple[Any, ...]):
    """The keys from the top of a tree to a leaf: a tuple; as text, their names with dots between, `layers.0.w`."""

    __slots__ = ()

    def __str__(self) -> str:
        return ".".join(map(name_of, self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text: as Python reads it, `['layers'][0].w`, or with `simple` its names only, `layers0w`.

    `separator` stands between keys: `keystr(path, simple=True, separator="/")` is `layers/0/w`.
    """
    return separator.join(map(name_of if simple else str, keys))
