"""A folder of cached results, safe with several processes.

An entry is one file: a mark, the SHA-256 of the payload, and the payload. A missing, truncated, altered or unreadable
file is a miss. If the folder cannot be written, the cache never hits.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

MARK = b"lavax cache 1\n"
HEADER_BYTES = len(MARK) + hashlib.sha256().digest_size

# The size of the folder is checked again after this many stored entries.
ENTRIES_BETWEEN_TRIMS = 64


class DiskCache:
    """Entries under `folder`. If they exceed `limit_bytes`, the oldest are dropped.

    A process should have one object per folder: it counts its stores, and lists all files only now and then.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._stored = 0

    def load(self, key: str) -> bytes | None:
        """The payload stored under `key`, or None."""
        try:
            entry = self._path(key).read_bytes()
        except OSError:
            return None
        payload = entry[HEADER_BYTES:]
        return payload if entry[:HEADER_BYTES] == _header(payload) else None

    def store(self, key: str, payload: bytes) -> None:
        """Stores `payload` atomically: a reader sees the old entry or the new one, never a part."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix="writing-")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_header(payload) + payload)
            os.replace(temporary, self._path(key))
        except OSError:
            _remove(temporary)
            return
        if self._stored % ENTRIES_BETWEEN_TRIMS == 0:
            with contextlib.suppress(OSError):
                self._trim()
        self._stored += 1

    def _path(self, key: str) -> Path:
        return self.folder / hashlib.sha256(key.encode()).hexdigest()

    def _trim(self) -> None:
        """Drops the oldest files until the rest take three quarters of the limit."""
        entries = sorted(_entries(self.folder), key=lambda entry: entry.modified)
        total = sum(entry.nbytes for entry in entries)
        if total <= self.limit_bytes:
            return
        for entry in entries:
            if total <= self.limit_bytes * 3 // 4:
                return
            _remove(entry.path)
            total -= entry.nbytes


@dataclass(frozen=True)
class _Entry:
    path: str
    nbytes: int
    modified: float


def _entries(folder: Path) -> list[_Entry]:
    """The files of the folder, without those that another process removes meanwhile."""
    entries = []
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):
                status = file.stat()
                entries.append(_Entry(file.path, status.st_size, status.st_mtime))
    return entries


def _header(payload: bytes) -> bytes:
    return MARK + hashlib.sha256(payload).digest()


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
