"""A folder of cached results, safe with several processes.

An entry is one file: a mark, the length of the payload, the SHA-256 of the key, that of the payload, and the payload. A
missing, truncated, altered or unreadable file is a miss, and so are the entry of another key under this one's name and
whatever is no regular file. If the folder cannot be written, the cache never hits.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import stat
import tempfile
from pathlib import Path

from lavax.base import config
from lavax.base.quick_dataclasses import dataclass

_LOG = logging.getLogger("lavax.cache")

MARK = b"lavax cache 2\n"
_LENGTH_BYTES = 8
HEADER_BYTES = len(MARK) + _LENGTH_BYTES + 2 * hashlib.sha256().digest_size

# A folder that cannot be: a cache there never hits.
_NOWHERE = Path(os.devnull) / "lavax"

# A pipe is opened without waiting for its writer. Systems without pipes in folders have no such flag.
_OPENING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

# The size of the folder is checked again after this many stored entries.
ENTRIES_BETWEEN_TRIMS = 64


def folder_of(name: str) -> Path:
    """The folder of the cache of this name. Without a home directory it is one that cannot be, which is logged once."""
    try:
        return config.cache_folder() / name
    except RuntimeError as error:
        _log_that_cache_is_off(str(error))
        return _NOWHERE / name


@functools.cache
def _log_that_cache_is_off(reason: str) -> None:
    _LOG.warning("nothing is cached on disk (%s): set LAVAX_CACHE to a folder", reason.rstrip("."))


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
        entry = _content(self._path(key), HEADER_BYTES + self.limit_bytes)
        payload = entry[HEADER_BYTES:]
        return payload if entry[:HEADER_BYTES] == _header(key, payload) else None

    def store(self, key: str, payload: bytes) -> None:
        """Stores `payload` atomically: a reader sees the old entry or the new one, never a part."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix="writing-")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_header(key, payload) + payload)
            os.replace(temporary, self._path(key))
        except OSError:
            _remove(temporary)
            return
        if self._stored % ENTRIES_BETWEEN_TRIMS == 0:
            with contextlib.suppress(OSError):
                self._trim()
        self._stored += 1

    def drop(self, key: str) -> None:
        """Forgets what was stored under `key`."""
        _remove(self._path(key))

    def _path(self, key: str) -> Path:
        return self.folder / _digest(key).hex()

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
    """The regular files of the folder, without those that another process removes meanwhile."""
    entries = []
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    entries.append(_Entry(file.path, status.st_size, status.st_mtime))
    return entries


def _content(path: Path, most: int) -> bytes:
    """The bytes of a regular file; none if it cannot be read, is something else, or is longer than `most`."""
    try:
        handle = os.open(path, _OPENING)
    except OSError:
        return b""
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return b""
        with open(handle, "rb", closefd=False) as file:
            return file.read(status.st_size)  # as many bytes are allocated as are asked for
    except OSError:
        return b""
    finally:
        os.close(handle)


def _header(key: str, payload: bytes) -> bytes:
    length = len(payload).to_bytes(_LENGTH_BYTES, "little")
    return MARK + length + _digest(key) + hashlib.sha256(payload).digest()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def _remove(path: str | Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
