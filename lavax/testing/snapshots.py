"""Texts of `assert_ir` in the sources of tests: how they are compared, and how `--lavax-update` rewrites them."""
from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType

from lavax.base.quick_dataclasses import dataclass

_TEXT = 2  # the position of the argument


@dataclass(frozen=True)
class Place:
    """A call in a file: the line and the column, in bytes of UTF-8, where it begins and where it ends."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


_pending: dict[Place, str] | None = None  # None: nothing is being updated


def begin_update() -> None:
    """From now on `record` takes texts."""
    global _pending
    _pending = {}


def is_updating() -> bool:
    """Whether texts are recorded rather than compared."""
    return _pending is not None


def end_update() -> dict[str, int]:
    """Writes the recorded texts into their files; returns the number of texts that changed, by file."""
    global _pending
    recorded, _pending = _pending or {}, None
    changed = {}
    for path in dict.fromkeys(place.path for place in recorded):
        changed[path] = _rewritten(Path(path), {place: text for place, text in recorded.items() if place.path == path})
    return {path: count for path, count in changed.items() if count}


def normal(text: str) -> str:
    """The text as it is compared: without its common indentation, and without empty lines around it."""
    return textwrap.dedent(text).strip()


def record(frame: FrameType, found: str, text: str | None) -> None:
    """Remembers the text of the call that the frame is in. Raises AssertionError if it cannot be written there."""
    assert _pending is not None
    place = _place_of(frame)
    if place is None or _call_at(place) is None:
        if text is not None and normal(text) == found:
            return
        raise AssertionError(
            "assert_ir: the call cannot be found in its file, so --lavax-update cannot write the text there: write "
            "assert_ir(function, args, \"\"\"…\"\"\") with a literal text, on lines of its own"
        )
    known = _pending.get(place)
    if known is not None and known != found:
        raise AssertionError(
            "assert_ir: one call has several texts, such as in a loop or a parametrized test, and --lavax-update "
            f"cannot write them all: give each a call of its own. The texts are\n\n{known}\n\n{found}"
        )
    _pending[place] = found


def _place_of(frame: FrameType) -> Place | None:
    """The call that the frame is executing."""
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is None or None in positions:
        return None
    line, end_line, column, end_column = positions
    assert line is not None and end_line is not None and column is not None and end_column is not None
    return Place(frame.f_code.co_filename, line, column, end_line, end_column)


def _call_at(place: Place) -> ast.Call | None:
    """The call of assert_ir at a place whose text is a literal or left out."""
    source = "".join(linecache.getlines(place.path))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        ends = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Call) and ends == (place.line, place.column):
            is_same = (node.end_lineno, node.end_col_offset) == (place.end_line, place.end_column)
            return node if is_same and _has_literal(node) else None
    return None


def _has_literal(call: ast.Call) -> bool:
    if any(isinstance(argument, ast.Starred) for argument in call.args[: _TEXT + 1]):
        return False
    text = _text_of(call)
    return text is None or (isinstance(text, ast.Constant) and (text.value is None or isinstance(text.value, str)))


def _text_of(call: ast.Call) -> ast.expr | None:
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "text"), None)
    return named if named is not None or len(call.args) <= _TEXT else call.args[_TEXT]


def _rewritten(path: Path, texts: dict[Place, str]) -> int:
    """Writes the texts into the file, the last first, so that the places of the others stay right."""
    linecache.checkcache(str(path))
    lines = path.read_bytes().splitlines(keepends=True)
    count = 0
    for place in sorted(texts, key=lambda place: (place.line, place.column), reverse=True):
        call = _call_at(place)
        if call is None:
            continue
        text = _text_of(call)
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and normal(text.value) == texts[place]:
            continue
        margin = _margin(lines[place.line - 1])
        literal = _literal(texts[place], margin)
        if text is None:
            after = max(call.args, key=lambda argument: (argument.end_lineno, argument.end_col_offset))
            start = end = (after.end_lineno or 0, after.end_col_offset or 0)
            literal = f", {literal}"
        else:
            start, end = (text.lineno, text.col_offset), (text.end_lineno or 0, text.end_col_offset or 0)
        _replace(lines, start, end, literal)
        count += 1
    if count:
        path.write_bytes(b"".join(lines))
        linecache.checkcache(str(path))
    return count


def _literal(text: str, margin: str) -> str:
    """The text as a literal over several lines, which stands deeper than the call."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return "\n".join(['"""', *_indented(escaped.splitlines(), f"{margin}    "), f'{margin}"""'])


def _indented(lines: Iterable[str], margin: str) -> Iterator[str]:
    return (f"{margin}{line}" if line else line for line in lines)


def _margin(line: bytes) -> str:
    return line[: len(line) - len(line.lstrip())].decode()


def _replace(lines: list[bytes], start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    """Replaces what stands between two places, (line, column in bytes), by a text."""
    first, last = start[0] - 1, end[0] - 1
    whole = lines[first][: start[1]] + text.encode() + lines[last][end[1] :]
    lines[first : last + 1] = [whole]
