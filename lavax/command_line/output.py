"""What the commands write."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def say(text: str = "") -> None:
    """Writes a line at once, so that long commands show how far they are."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def columns(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Lines of words in columns, aligned left."""
    lines = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return [f"{indent}{line}".rstrip() for line in padded]
