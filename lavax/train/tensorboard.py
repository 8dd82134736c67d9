"""Event files of TensorBoard."""
from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path


class TensorBoardLog:
    """Scalars for TensorBoard, in an event file of its own in `folder`.

    The file is a sequence of records: length (8 bytes), its checksum, the contents, their checksum. The contents are
    messages `Event` of TensorBoard's event.proto, written here field by field.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.path = Path(folder) / name
        self._append(_text(3, "brain.Event:2"))

    def begin(self, step: int) -> None:
        """Tells TensorBoard to forget what earlier files have of later steps."""
        if step:
            self._append(_number(2, step) + _message(7, _number(1, 1)))  # a SessionLog with the status START

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds values under their names."""
        summary = b"".join(
            _message(1, _text(1, name) + struct.pack("<Bf", 2 << 3 | 5, value)) for name, value in values.items()
        )
        self._append(_number(2, step) + _message(5, summary))

    def _append(self, event: bytes) -> None:
        content = struct.pack("<Bd", 1 << 3 | 1, time.time()) + event
        length = struct.pack("<Q", len(content))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            file.write(length + _checksum(length) + content + _checksum(content))


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3) + _varint(value)


def _message(place: int, content: bytes) -> bytes:
    return _varint(place << 3 | 2) + _varint(len(content)) + content


def _text(place: int, value: str) -> bytes:
    return _message(place, value.encode())


@cache
def _crc_table() -> tuple[int, ...]:
    """Of the polynomial of Castagnoli (RFC 3720, appendix B.4), bits reversed."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def crc32c(content: bytes) -> int:
    """The checksum CRC-32C."""
    table, value = _crc_table(), 0xFFFFFFFF
    for byte in content:
        value = table[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


def _checksum(content: bytes) -> bytes:
    """CRC-32C, masked as records have it: rotated by 15 bits, plus a constant."""
    value = crc32c(content)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)
