"""The tensors of a file under other names, or several joined as one; each is still read only when it is asked for."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

Tensors = Mapping[str, np.ndarray]


class _Made(Mapping[str, np.ndarray]):
    """Tensors by name, each made by a function when it is asked for."""

    def __init__(self, made: Mapping[str, Callable[[], np.ndarray]]) -> None:
        self._made = made

    def __getitem__(self, name: str) -> np.ndarray:
        return self._made[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def made_when_asked(made: Mapping[str, Callable[[], np.ndarray]]) -> Tensors:
    """Tensors by name, each made by its function when it is asked for."""
    return _Made(made)


def renamed(tensors: Tensors, rename: Callable[[str], str]) -> Tensors:
    """The same tensors under the names that `rename` gives for theirs."""
    return _Made({rename(name): _reader(tensors, name) for name in tensors})


def with_prefix(tensors: Tensors, prefix: str, besides: str) -> Tensors:
    """`tensors` with `prefix` before each name that does not match `besides`, unless some have it already."""
    if any(name.startswith(prefix) for name in tensors):
        return tensors
    return renamed(tensors, lambda name: name if re.match(besides, name) else prefix + name)


def stacked(tensors: Tensors, names: Iterable[str]) -> Tensors:
    """`tensors` in which all whose names differ from one of `names` only in a number for its `*` are one array.

    They are joined along a new first axis, in the order of their numbers.
    """
    parts = {name: _numbered(tensors, name) for name in names if "*" in name}
    used = {part for found in parts.values() for part in found}
    whole = {name: _reader(tensors, name) for name in tensors if name not in used}
    joined = {name: _joiner(tensors, found) for name, found in parts.items() if found}
    return _Made(whole | joined) if joined else tensors


def unstacked(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """The inverse of `stacked`: the rows of `array`, with their numbers in place of the `*` in its name."""
    if "*" not in name:
        return {name: array}
    return {name.replace("*", str(number)): row for number, row in enumerate(array)}


def _reader(tensors: Tensors, name: str) -> Callable[[], np.ndarray]:
    return lambda: tensors[name]


def _joiner(tensors: Tensors, names: list[str]) -> Callable[[], np.ndarray]:
    return lambda: np.stack([tensors[name] for name in names])


def _numbered(tensors: Tensors, name: str) -> list[str]:
    """The names that `name` stands for, by number."""
    pattern = re.compile(re.escape(name).replace(r"\*", r"(\d+)"))
    found = {int(match[1]): match[0] for match in map(pattern.fullmatch, tensors) if match}
    return [found[number] for number in sorted(found)]
