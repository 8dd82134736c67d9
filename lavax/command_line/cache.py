"""`lavax cache`: where compiled shaders are kept on disk, how large they are, and their removal."""
from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from lavax.base import config
from lavax.base.quick_dataclasses import dataclass
from lavax.command_line.errors import UsageError
from lavax.command_line.output import columns, say
from lavax.passes.reports.table import bytes_text

# Folders of the cache, and what is in them.
CONTENTS = {
    "plans": "finished plans, by graph, device and lavax's own code",
    "spirv": "compiled shaders, by source and compiler",
    "pipelines": "the driver's own cache, by device and driver",
    "tuning": "schedules that were chosen by measurement",
    "rates": "what devices do in a second",
    "compiler": "what the installed GLSL compiler knows",
}
# The names of entries, and of entries that are being written: nothing else is ever removed.
_ENTRY = re.compile(r"[0-9a-f]{64}|writing-.*")


@dataclass(frozen=True)
class Entries:
    """The entries of one folder of the cache."""

    folder: Path
    paths: tuple[Path, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of all entries that are still there."""
        return sum(map(_size, self.paths))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the command."""
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show", help="show (default) or clear")
    parser.add_argument("--only", choices=tuple(CONTENTS), action="append", help="this part of the cache")


def run(options: argparse.Namespace) -> int:
    """Shows the cache, or clears it."""
    try:
        folder = config.cache_folder()
    except RuntimeError as error:  # no home directory
        raise UsageError(f"there is no cache folder ({error}): set LAVAX_CACHE to a folder") from error
    parts = [part for part in found_in(folder) if not options.only or part.folder.name in options.only]
    say(f"{folder}{'' if folder.is_dir() else ' (not there yet)'}")
    if options.action == "clear":
        return _clear(parts)
    rows = [_row(part.folder.name, len(part.paths), part.nbytes) for part in parts]
    total = _row("all", sum(len(part.paths) for part in parts), sum(part.nbytes for part in parts))
    for line in columns([*rows, total], indent="  "):
        say(line)
    return 0


def found_in(folder: Path) -> Iterator[Entries]:
    """The entries in each folder of the cache."""
    for name in CONTENTS:
        with contextlib.suppress(OSError):
            paths = sorted(path for path in (folder / name).iterdir() if _ENTRY.fullmatch(path.name))
            yield Entries(folder / name, tuple(path for path in paths if path.is_file() and not path.is_symlink()))


def _clear(parts: list[Entries]) -> int:
    """Removes the entries, then the folders that are empty; returns 1 if something could not be removed."""
    removed = freed = 0
    failures = []
    for part in parts:
        for path in part.paths:
            size = _size(path)
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                failures.append(str(error))
                continue
            removed, freed = removed + 1, freed + size
        with contextlib.suppress(OSError):  # it holds something else
            part.folder.rmdir()
    say(f"  removed {_counted(removed)}, {bytes_text(freed)}")
    for failure in failures:
        say(f"  not removed: {failure}")
    return 1 if failures else 0


def _row(name: str, count: int, nbytes: int) -> tuple[str, ...]:
    return name, _counted(count), bytes_text(nbytes), CONTENTS.get(name, "")


def _counted(count: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
