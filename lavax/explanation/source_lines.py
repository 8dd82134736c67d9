"""The lines of the user's program, with the kernels that come from each."""
from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from itertools import pairwise

from lavax.base.quick_dataclasses import dataclass
from lavax.explanation.kernels import ExplainedKernel

_AROUND, _LONGEST_GAP = 2, 6  # lines shown beside those with kernels; a longer gap begins another excerpt


@dataclass(frozen=True)
class SourceLine:
    """A line of a file, and the kernels that come from it."""

    number: int
    text: str
    kernels: tuple[ExplainedKernel, ...]


@dataclass(frozen=True)
class Excerpt:
    """Neighbouring lines of a file."""

    path: str
    lines: tuple[SourceLine, ...]


def excerpts(kernels: Iterable[ExplainedKernel]) -> Iterator[Excerpt]:
    """The parts of the user's files from which kernels come, file by file; none of files that cannot be read."""
    found: dict[str, dict[int, list[ExplainedKernel]]] = {}
    for kernel in kernels:
        for location in kernel.lines:
            path, _, number = location.rpartition(":")
            found.setdefault(path, {}).setdefault(int(number), []).append(kernel)
    for path, by_line in found.items():
        if not linecache.getlines(path):
            continue
        for first, last in _ranges(sorted(by_line), len(linecache.getlines(path))):
            numbers = range(first, last + 1)
            lines = [
                SourceLine(number, linecache.getline(path, number).rstrip(), tuple(by_line.get(number, ())))
                for number in numbers
            ]
            yield Excerpt(path, tuple(lines))


def _ranges(numbers: list[int], last: int) -> Iterator[tuple[int, int]]:
    start = numbers[0]
    for before, after in pairwise([*numbers, last + 2 * _LONGEST_GAP]):
        if after - before > _LONGEST_GAP:
            yield max(1, start - _AROUND), min(last, before + _AROUND)
            start = after
