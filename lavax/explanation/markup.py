"""Pieces of HTML: escaped text, tables, code with its words marked."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_GLSL = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/|^\s*\#[^\n]*)"
    r"|(?P<word>\b(?:if|else|for|while|do|return|const|in|out|inout|layout|uniform|buffer|shared|struct|void|bool|u?int|"
    r"float|double|[iu]?vec[234]|uint64_t|int64_t|float16_t|readonly|writeonly|restrict|coherent|break|continue)\b)"
    r"|(?P<number>\b(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?)[uUfF]?\b)",
    re.DOTALL | re.MULTILINE,
)
_GRAPH = re.compile(
    r"(?P<word>(?<== )\w+(?=\()|^\s*(?:return|graph|kernel|program)\b)"
    r"|(?P<comment># [^\n]*)"
    r"|(?P<number>\b(?:f|bf|i|u)(?:8|16|32|64)\[[\d,]*\]|\bbool\[[\d,]*\])",
    re.MULTILINE,
)
LANGUAGES = {"glsl": _GLSL, "graph": _GRAPH}


def code(text: str, language: str) -> str:
    """The text with words, numbers and comments of its language marked."""
    parts, end = [], 0
    for found in LANGUAGES[language].finditer(text):
        parts.append(escape(text[end : found.start()], quote=False))
        parts.append(f'<span class="{found.lastgroup}">{escape(found[0], quote=False)}</span>')
        end = found.end()
    return "".join([*parts, escape(text[end:], quote=False)])


def block(text: str, language: str) -> str:
    """A block of code."""
    return f"<pre><code>{code(text, language)}</code></pre>"


def folded(summary: str, content: str, is_open: bool = False) -> str:
    """Content behind a click; both are HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{content}</details>"


def cell(text: str, kind: str = "") -> str:
    """A cell of a table, from text."""
    return html_cell(escape(text), kind)


def html_cell(content: str, kind: str = "") -> str:
    """A cell of a table, from HTML."""
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"


def bar_cell(text: str, part: float) -> str:
    """A cell with a bar behind its text that fills a part of it."""
    return f'<td class="bar" style="--part:{100 * min(max(part, 0.0), 1.0):.1f}%">{escape(text)}</td>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,), total: bool = False) -> str:
    """A table; rows consist of cells in HTML, and `left` numbers the columns whose heads stand left."""
    heads = "".join(
        f'<th class="left">{escape(text)}</th>' if number in left else f"<th>{escape(text)}</th>"
        for number, text in enumerate(head)
    )
    lines = [f"<tr>{''.join(row)}</tr>" for row in rows]
    if total and lines:
        lines[-1] = lines[-1].replace("<tr>", '<tr class="all">', 1)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def names(texts: Iterable[str]) -> str:
    """Words in a row, each in a frame."""
    return "".join(f'<span class="chip">{escape(text)}</span>' for text in texts)
