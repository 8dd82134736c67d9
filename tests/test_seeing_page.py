"""The code and the command lines of docs/seeing.md run."""
from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lavax.command_line.main import COMMANDS, main
from tests.documents import ROOT

PAGE = (ROOT / "docs" / "seeing.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(python|sh)([^\n]*)\n(.*?)```", re.DOTALL)


def blocks() -> Iterator[tuple[str, str, str]]:
    """The language of each block, the name of its file, and its text."""
    for block in BLOCK.finditer(PAGE):
        yield block[1], block[2].strip(), block[3]


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """In order: files are written, other Python runs in one namespace, command lines are those of `lavax`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names: dict[str, Any] = {}
    for language, file, text in blocks():
        if language == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line)
                assert (program, main(words)) == ("lavax", 0), line
                assert capfd.readouterr().out
        elif file:
            Path(file).write_text(text, encoding="utf-8")
        else:
            exec(compile(text, "seeing.md", "exec"), names)


def test_the_page_names_every_command() -> None:
    assert all(f"`lavax {name}" in PAGE for name in COMMANDS)
