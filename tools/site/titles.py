"""Pages that cite a page by its file's name, as they do for readers of the repository, cite its title on the site."""
from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
# [dumps.md](dumps.md#ir) and, without a link, docs/dumps.md; not in code.
_LINK = re.compile(r"\[(?:docs/)?[\w/]+\.md\]\((?P<path>[\w./-]+\.md)(?P<anchor>#[\w-]+)?\)")
_NAME = re.compile(r"(?<!\]\()(?<![\w/`\[])docs/(?P<path>[\w/]+\.md)(?![\w`])")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def with_titles(markdown: str, page: Path) -> str:
    """The text of a page, with names of files that are pages replaced by links that have their titles."""
    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _titled(part, page) for part in parts)


def _titled(text: str, page: Path) -> str:
    folder = (DOCS / page).parent

    def linked(link: re.Match[str]) -> str:
        title = title_of((folder / link["path"]).resolve())
        return f"[{title}]({link['path']}{link['anchor'] or ''})" if title else link[0]

    def named(name: re.Match[str]) -> str:
        target = DOCS / name["path"]
        title = title_of(target)
        return f"[{title}]({Path(os.path.relpath(target, folder)).as_posix()})" if title else name[0]

    return _NAME.sub(named, _LINK.sub(linked, text))


def title_of(page: Path) -> str:
    """The first heading of a page; "" if there is no such page."""
    if not page.is_file():
        return ""
    found = re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""
