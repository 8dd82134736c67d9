"""The layout of a GGUF file, walked before anything of it is kept: each count and length must fit into the file.

A file is "GGUF", a version (32 bits), the numbers of tensors and of fields (64 bits), the fields, the descriptions of
tensors, and the numbers. A field is a text, a type (32 bits) and a value. A text is its length (64 bits) and bytes. An
array is a type, a length (64 bits) and values. A tensor is a text, its number of axes (32 bits), their extents (64
bits), a type (32 bits) and an offset (64 bits).
"""
from __future__ import annotations

import mmap
import os
import struct
from math import prod
from pathlib import Path

_MAGIC = b"GGUF"
# By the number of a type: the bytes of a value.
_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY = 8, 9
_DEEPEST = 4  # arrays within arrays
_MOST_AXES = 8
_MOST_ELEMENTS = (1 << 63) - 1
_LEAST_FIELD, _LEAST_TENSOR = 8 + 4 + 1, 8 + 4 + 4 + 8  # bytes


class _Walk:
    """A place in a file. Raises ValueError for a step beyond its end."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content, self._size, self._place = content, len(content), len(_MAGIC)
        self._order = "<"
        if self.number("I") & 0xFFFF == 0:  # the version, in the other order of bytes
            self._order = ">"

    def skip(self, nbytes: int) -> None:
        if nbytes > self._size - self._place:
            raise ValueError(f"{nbytes} bytes are announced at {self._place}, and {self._size - self._place} are left")
        self._place += nbytes

    def number(self, form: str) -> int:
        start = self._place
        self.skip(struct.calcsize(form))
        return int(struct.unpack_from(self._order + form, self._content, start)[0])

    def text(self) -> None:
        self.skip(self.number("Q"))

    def value(self, kind: int, depth: int = 0) -> None:
        if kind == _TEXT:
            self.text()
        elif kind == _ARRAY:
            self._array(depth + 1)
        elif kind in _BYTES:
            self.skip(_BYTES[kind])
        else:
            raise ValueError(f"no type has the number {kind}")

    def _array(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError(f"arrays are nested more than {_DEEPEST} deep")
        kind, length = self.number("I"), self.number("Q")
        if kind in _BYTES:
            self.skip(length * _BYTES[kind])
            return
        self.require(length, 8)
        for _ in range(length):
            self.value(kind, depth)

    def require(self, count: int, nbytes: int) -> None:
        """Raises ValueError unless so many things of at least so many bytes are left."""
        if count * nbytes > self._size - self._place:
            raise ValueError(f"{count} parts are announced, which its {self._size} bytes do not hold")

    def field(self) -> None:
        self.text()
        self.value(self.number("I"))

    def tensor(self) -> None:
        self.text()
        axes = self.number("I")
        if axes > _MOST_AXES:
            raise ValueError(f"a tensor has {axes} axes")
        extents = [self.number("Q") for _ in range(axes)]
        if max(extents, default=0) > _MOST_ELEMENTS or prod(extents) > _MOST_ELEMENTS:
            raise ValueError(f"a tensor has the shape {extents}")
        self.skip(4 + 8)


def check_layout(path: Path) -> None:
    """Raises ValueError if counts, lengths or extents of the file do not fit it. Takes time linear in its texts."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < len(_MAGIC) or file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it does not begin with GGUF")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            walk = _Walk(content)
            tensors, fields = walk.number("Q"), walk.number("Q")
            walk.require(fields, _LEAST_FIELD)
            for _ in range(fields):
                walk.field()
            walk.require(tensors, _LEAST_TENSOR)
            for _ in range(tensors):
                walk.tensor()
