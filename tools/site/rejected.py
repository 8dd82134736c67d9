"""The list of what was tried and lost: docs/rejected.md has a line for each section of the pages in docs/rejected.

`python -m tests.documents` writes it anew.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
INDEX = DOCS / "rejected.md"
PAGES = DOCS / "rejected"
_TITLE, _SECTION, _SUFFIX = "# ", "## ", ": tried and lost"


def with_all_sections(text: str) -> str:
    """The index's text with its list renewed; what stands before the first topic stays."""
    introduction = text.partition(f"\n{_SECTION}")[0].rstrip()
    return "\n\n".join([introduction, *map(_listed, sorted(PAGES.glob("*.md")))]) + "\n"


def anchor_of(title: str) -> str:
    """What a link to a heading ends in."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _listed(page: Path) -> str:
    """A page's topic, and a line for each of its sections."""
    lines = page.read_text(encoding="utf-8").splitlines()
    (topic,) = (line.removeprefix(_TITLE).removesuffix(_SUFFIX) for line in lines if line.startswith(_TITLE))
    return "\n".join([f"{_SECTION}{topic}", "", *_links(page, lines)])


def _links(page: Path, lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith(_SECTION):
            section = line.removeprefix(_SECTION)
            yield f"- [{section}]({PAGES.name}/{page.name}#{anchor_of(section)})"
