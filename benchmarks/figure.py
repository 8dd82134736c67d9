"""Measured figures, and their table."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

# Units of time: how many make a second, and their symbol. A time is shown in the first in which it is at least 1.
_UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))


@dataclass(frozen=True)
class Figure:
    """A line of the table: the measured quantity, its value, and its target, if it has one."""

    name: str
    value: str
    target: str = ""
    is_met: bool = True


def at_most(name: str, value: float, bound: float, text: str | None = None, unit: str = "") -> Figure:
    """A figure that must not exceed `bound`, in `unit`; `text`, if given, is shown instead of the number."""
    return Figure(name, f"{value:.3g}{unit}" if text is None else text, f"at most {bound:g}{unit}", value <= bound)


def exactly(name: str, value: object, expected: object) -> Figure:
    """A figure with exactly one correct value."""
    return Figure(name, str(value), str(expected), value == expected)


def median(seconds: Sequence[float]) -> float:
    """The median of at least two times."""
    return quantiles(seconds, n=4)[1]


def spread(seconds: Sequence[float]) -> str:
    """Median and quartiles of at least two times."""
    low, middle, high = quantiles(seconds, n=4, method="inclusive")
    scale, unit = next((pair for pair in _UNITS if middle * pair[0] >= 1), _UNITS[-1])
    return f"{middle * scale:.3g} {unit} ({low * scale:.3g} to {high * scale:.3g})"


def as_table(figures: Sequence[Figure]) -> str:
    """A Markdown table with the verdict on each figure that has a target."""
    rows = []
    for shown in figures:
        verdict = ("met" if shown.is_met else "missed") if shown.target else ""
        rows.append([shown.name, shown.value, shown.target, verdict])
    return markdown(("figure", "measured: median (quartiles)", "target", ""), rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(_line(line, widths) for line in lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
