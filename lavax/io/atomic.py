"""Files that are whole or not there: written beside their place, then moved to it."""
from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = ".tmp"  # ends the names of files that are being written, which begin with a dot


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A path to write a file to, which takes the place of `path` once the block ends without an error.

    Folders above it are made. A process that is killed leaves the old file as it was, and at most a hidden temporary
    one beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Removes what killed processes left in `folder`; nobody else may be writing there."""
    for path in folder.glob(f".*{UNFINISHED}"):
        path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Has the contents of a file, or the entries of a folder, written to disk."""
    if os.name == "nt" and path.is_dir():
        return  # folders cannot be opened there
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
