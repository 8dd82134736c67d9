"""What `explain` returns: the whole way of a function, as an object that prints and that is saved as a page."""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from lavax.base.quick_dataclasses import dataclass
from lavax.explanation.arena import Arena
from lavax.explanation.kernels import ExplainedKernel
from lavax.explanation.stages import Stage
from lavax.ir.graph import Graph, Node
from lavax.passes.reports import Cost, Memory, Profile
from lavax.passes.simplify.watching import AppliedRule


@dataclass(frozen=True)
class CountedRule:
    """A rule of simplification: how often it applied, and the lines of the user's program where it did."""

    rule: str
    meaning: str
    count: int
    locations: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ExplainedProgram:
    """A program of the device. A function that calls the host is several; others are one.

    `stages`: the graph after each pass. `kernel_of`: for each value of the graph that was cut into kernels, the kernel
    that computes it. `profile` is None if nothing was timed.
    """

    stages: tuple[Stage, ...]
    kernels: tuple[ExplainedKernel, ...]
    graph: Graph
    kernel_of: Mapping[Node, str]
    arena: Arena
    cost: Cost
    memory: Memory
    profile: Profile | None
    part: int = 0  # its number, if there are several


@dataclass(frozen=True, eq=False)
class Report:
    """A function, explained: `print(report)`, and `report.save("page.html")`.

    `function` is its name and `arguments` the text of what it was explained for; `device` the device that it was
    written for. `rules` are the rewrites that applied while it was traced and simplified.
    """

    function: str
    arguments: str
    device: str
    location: str
    rules: tuple[CountedRule, ...]
    programs: tuple[ExplainedProgram, ...]
    note: str = ""

    def __str__(self) -> str:
        from lavax.explanation.text import text_of

        return text_of(self)

    def html(self) -> str:
        """The page as text: one file that refers to nothing outside itself."""
        from lavax.explanation.page import page_of

        return page_of(self)

    def _repr_html_(self) -> str:
        """The page, in a frame of a notebook: its style is to stay its own."""
        style = "width:100%;height:44rem;border:1px solid #8886;border-radius:8px"
        return f'<iframe srcdoc="{escape(self.html())}" style="{style}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, which any browser opens, also without a network."""
        Path(path).write_text(self.html(), encoding="utf-8")


def counted_rules(applied: Sequence[AppliedRule]) -> tuple[CountedRule, ...]:
    """The rules, the most frequent first."""
    counts = Counter((each.rule, each.meaning) for each in applied)
    lines: dict[tuple[str, str], dict[str, None]] = {}
    for each in applied:
        if each.location is not None:
            lines.setdefault((each.rule, each.meaning), {})[each.location] = None
    return tuple(
        CountedRule(rule, meaning, count, tuple(lines.get((rule, meaning), ())))
        for (rule, meaning), count in counts.most_common()
    )
