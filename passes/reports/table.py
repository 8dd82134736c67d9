"""Tables of text, and numbers in short form."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from lavax.ir.location import line_and_scope

_LEFT_ALIGNED = ("kernel", "kind", "source lines", "")
_TIMES = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
_MOST_LINES = 4
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under their headings: words aligned left, numbers right."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(line, head, widths) for line in lines)


def _line(cells: Sequence[str], head: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if title in _LEFT_ALIGNED else cell.rjust(width)
        for cell, title, width in zip(cells, head, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def seconds_text(seconds: float) -> str:
    """`1.23 ms`."""
    scale, unit = next((pair for pair in _TIMES if seconds * pair[0] >= 1), _TIMES[-1])
    return f"{_three_digits(seconds * scale)} {unit}"


def bytes_text(nbytes: int) -> str:
    """`1.5 MiB`; in bytes if less than a KiB."""
    for size, unit in _BYTES:
        if nbytes >= size:
            return f"{_three_digits(nbytes / size)} {unit}"
    return f"{nbytes} B"


def rate_text(rate: float) -> str:
    """A number of billions per second; empty if it is zero."""
    return _three_digits(rate) if rate else ""


def times_text(times: int, is_least: bool) -> str:
    """How often a kernel runs; with a plus if that is known only when it runs."""
    return f"{times}+" if is_least else str(times)


def lines_text(locations: Sequence[str]) -> str:
    """Source lines in the order of their first use, `file.py:12,15 other.py:3`; the first few if there are many.

    Before a file stands the named scope of its lines, if they have one.
    """
    lines: dict[str, list[str]] = {}
    for location in locations[:_MOST_LINES]:
        place, scope = line_and_scope(location)
        path, _, line = place.rpartition(":")
        name = path.replace("\\", "/").rpartition("/")[2]
        lines.setdefault(f"{scope}/{name}" if scope else name, []).append(line)
    shown = " ".join(f"{name}:{','.join(numbers)}" for name, numbers in lines.items())
    return f"{shown} …" if len(locations) > _MOST_LINES else shown


def _three_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"
