"""The files of the repository that pages cite, as pages of the site with a number for each line.

A link out of docs/, such as [`fuse`](../passes/fuse/fuse.py#L47), leads to source/passes/fuse/fuse.py.html#L47.
"""
from __future__ import annotations

import html
import re
from pathlib import Path, PurePosixPath

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]+)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]+)?\)")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path} – lavax</title>
<link rel="stylesheet" href="{up}assets/source.css">
</head>
<body>
<header><a href="{up}index.html">lavax</a> <span>{path}</span></header>
{code}
</body>
</html>
"""
_cited: set[str] = set()


def link_to(path: str, page: PurePosixPath, line: int | None = None) -> str:
    """The address of a file's page, as a page of the site writes it, and that the file is to have one."""
    _cited.add(path)
    anchor = "" if line is None else f"#L{line}"
    return f"{'../' * (len(page.parts) - 1)}source/{path}.html{anchor}"


def with_links_to_sources(markdown: str, page: PurePosixPath | Path) -> str:
    """The text of a page with its links out of docs/ led to pages of the site."""
    place = PurePosixPath(page)
    folder = (DOCS / place).parent

    def led(link: re.Match[str]) -> str:
        target = (folder / link["path"]).resolve()
        if target.is_relative_to(DOCS) or not target.is_file() or link["picture"]:
            return link[0]
        if target == ROOT / "README.md":
            return f"[{link['text']}]({'../' * (len(place.parts) - 1)}index.md)"
        path = target.relative_to(ROOT).as_posix()
        return f'<a href="{link_to(path, place)}{link["anchor"] or ""}">{link["text"]}</a>'

    return _LINK.sub(led, markdown)


def write_cited(site: Path) -> None:
    """Writes the pages of the files that were cited."""
    for path in sorted(_cited):
        target = site / "source" / f"{path}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_of(path), encoding="utf-8")
    formatter = HtmlFormatter(style="default")
    dark = HtmlFormatter(style="github-dark")
    colours = formatter.get_style_defs(".source")
    colours += f"\n@media (prefers-color-scheme: dark) {{\n{dark.get_style_defs('.source')}\n}}\n"
    style = (Path(__file__).parent / "source.css").read_text(encoding="utf-8")
    (site / "assets" / "source.css").write_text(f"{colours}\n{style}", encoding="utf-8")


def page_of(path: str) -> str:
    """The page of one file; line 12 has the anchor L12."""
    text = (ROOT / path).read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(path)
    except ClassNotFound:
        lexer = TextLexer()
    formatter = HtmlFormatter(linenos="inline", linespans="L", anchorlinenos=False, cssclass="source")
    code = highlight(text, lexer, formatter).replace('id="L-', 'id="L')
    return _PAGE.format(path=html.escape(path), up="../" * (path.count("/") + 1), code=code)
